package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"cartwheel.dev/geo-config/fault"
)

// ourKind is the type of our mounts, unknownKind what a system says that does
// not tell.
const (
	ourKind     = "fuse.cartwheel"
	unknownKind = "unknown"
)

// mountedAs returns the type of what is mounted at exactly this place, "" if
// nothing is.
func mountedAs(point string) string {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return unknownKind
	}
	defer f.Close()
	kind, want := "", octal(point)
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) > 2 && fields[1] == want {
			kind = fields[2] // the last one covers the others
		}
	}
	return kind
}

// octal writes a path as /proc/self/mounts and fstab do.
func octal(path string) string {
	var b strings.Builder
	for i := range len(path) {
		switch ch := path[i]; ch {
		case ' ', '\t', '\n', '\\', '#':
			fmt.Fprintf(&b, `\%03o`, ch)
		default:
			b.WriteByte(ch)
		}
	}
	return b.String()
}

// unmount takes a mount away: politely, its name only, or by force.
func unmount(point string, lazy, force bool) error {
	const op fault.Op = "command.unmount"
	if os.Geteuid() != 0 {
		return unmountByHelper(point, lazy || force)
	}
	flags := 0
	if lazy || force {
		flags |= syscall.MNT_DETACH
	}
	if force {
		flags |= syscall.MNT_FORCE
	}
	err := syscall.Unmount(point, flags)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EBUSY):
		return fault.E(fault.Busy, op, point, "is in use: close what is open there and leave its directories, or use --lazy")
	case errors.Is(err, syscall.EPERM):
		return fault.E(fault.Permission, op, point, "this process may not unmount: it lacks CAP_SYS_ADMIN")
	}
	return fault.Wrap(fault.IO, op, point, err)
}

func unmountByHelper(point string, lazy bool) error {
	const op fault.Op = "command.unmountByHelper"
	words := []string{"-u"}
	if lazy {
		words = append(words, "-z")
	}
	out, err := exec.Command("fusermount3", append(words, "--", point)...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fault.E(fault.NotFound, op, "fusermount3", "is not installed: apt-get install fuse3, or unmount as root")
	}
	if err != nil {
		return &fault.Error{Kind: fault.Busy, Op: op, Subject: point, Public: string(bytes.TrimSpace(out)) + "; close what is open there, or use --lazy", Cause: err}
	}
	return nil
}
