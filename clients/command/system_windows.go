package command

import (
	"os"
	"path/filepath"
	"syscall"

	"cartwheel.dev/geo-config/fault"
)

// hangup is empty: there is no such signal.
var hangup []os.Signal //nolint:gochecknoglobals // a constant

// stopSignal ends a mount; this system knows no gentler one.
var stopSignal = os.Kill //nolint:gochecknoglobals // a constant

// ownSession frees a child from this console.
func ownSession() *syscall.SysProcAttr {
	const newGroupDetached = 0x200 | 0x8
	return &syscall.SysProcAttr{CreationFlags: newGroupDetached}
}

// placeOf leaves a drive letter or a star as it is, and makes a directory
// absolute.
func placeOf(point string) (string, error) {
	if point == "*" || len(point) == 2 && point[1] == ':' {
		return point, nil
	}
	return filepath.Abs(point)
}

// checkPlace refuses a directory that is there: WinFsp makes it itself.
func checkPlace(point string) error {
	if point == "*" || len(point) == 2 {
		return nil
	}
	if _, err := os.Stat(point); err == nil {
		return fault.E(fault.Exists, "command.mount", point, "is there already: name a drive letter, or a directory that is not there yet")
	}
	return nil
}

// lock is not needed: one process a mount is WinFsp's own rule, and umount
// waits for none.
func lock(*os.File) bool { return true }

func notifyReady(*env) {}
