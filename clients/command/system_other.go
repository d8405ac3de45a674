//go:build !linux

package command

import (
	"bytes"
	"os/exec"

	"cartwheel.dev/geo-config/fault"
)

// ourKind is the type of our mounts, unknownKind what a system says that does
// not tell.
const (
	ourKind     = "cartwheel"
	unknownKind = "unknown"
)

func mountedAs(string) string { return unknownKind }

// unmount takes a mount away.
func unmount(point string, lazy, force bool) error {
	var words []string
	if lazy || force {
		words = append(words, "-f")
	}
	if out, err := exec.Command("umount", append(words, point)...).CombinedOutput(); err != nil {
		return &fault.Error{Kind: fault.Busy, Op: "command.umount", Subject: point, Public: string(bytes.TrimSpace(out)), Cause: err}
	}
	return nil
}
