//go:build !linux && !darwin

package earlier

import (
	"io/fs"
	"os"

	"cartwheel.dev/geo-config/fault"
)

// MakeSpecial fails: the system has no such files.
func MakeSpecial(to string, _ fs.FileMode, _ uint64) error {
	return fault.E(fault.NotSupported, "earlier.MakeSpecial", to, "this system has no such files: restore it from another machine")
}

// dress gives a copy the mode and the times of what it is a copy of: what the system has.
func dress(_, to string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	if err := os.Chtimes(to, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return os.Chmod(to, info.Mode())
}
