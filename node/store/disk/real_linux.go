package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// hasSyncedFlag tells that O_DSYNC exists here.
const hasSyncedFlag = true

func systemFlags(m Mode) int {
	flags := 0
	if m&Direct != 0 {
		flags |= unix.O_DIRECT
	}
	if m&Synced != 0 {
		flags |= unix.O_DSYNC
	}
	return flags
}

func dataSync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// allocate reserves real blocks; a file system without fallocate gets a longer
// file, whose writes may then still find the disk full.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(size)
	}
	return err
}

// SyncDirectory makes the names in a directory durable, such as one that a file was
// renamed to. Errors are the operating system's.
func SyncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
