package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedByte is which byte of a lock's file is locked: far behind its content,
// which others could not read otherwise.
const lockedByte = 1 << 30

func usageOf(dir string) (Usage, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Usage{}, err
	}
	var free, total uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, &total, nil); err != nil {
		return Usage{}, err
	}
	return Usage{Total: int64(total), Free: int64(free)}, nil
}

func lockFile(f *os.File) error {
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{Offset: lockedByte})
}

func isHeld(err error) bool { return errors.Is(err, windows.ERROR_LOCK_VIOLATION) }

func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
