//go:build !windows

package demo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"cartwheel.dev/geo-config/fault"
)

// checkFolder refuses a demo's folder in which another user may have put things:
// what it says would be believed, and keys would go into it.
func checkFolder(dir string) error {
	const op fault.Op = "demo.checkFolder"
	parent, err := os.Stat(filepath.Dir(dir))
	if err == nil && parent.Mode().Perm()&0o002 != 0 && parent.Mode()&fs.ModeSticky == 0 {
		return fault.E(fault.Permission, op, filepath.Dir(dir), "every user may move what is in this directory: name another one with --dir, or set its sticky bit (chmod +t)")
	}
	for _, d := range []string{dir, filepath.Join(dir, ".state")} {
		info, err := os.Lstat(d)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is made
		}
		if err != nil {
			return fault.FromOS(op, d, err)
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !info.IsDir():
			return fault.E(fault.Permission, op, d, "is no directory: move it away, or name another directory with --dir")
		case !ok || int(owner.Uid) != os.Geteuid():
			return fault.E(fault.Permission, op, d, "belongs to another user: name a directory of your own with --dir")
		case info.Mode().Perm()&0o022 != 0:
			return fault.E(fault.Permission, op, d, "others may write to it: run chmod go-w on it once you have looked at what is in it, or name another directory with --dir")
		}
	}
	return nil
}
