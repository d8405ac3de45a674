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

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func usageOf(dir string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Usage{}, err
	}
	return Usage{Total: int64(st.Blocks) * st.Bsize, Free: int64(st.Bavail) * st.Bsize}, nil
}

func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

func isHeld(err error) bool    { return errors.Is(err, unix.EWOULDBLOCK) }
func isNoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
