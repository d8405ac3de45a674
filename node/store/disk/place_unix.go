//go:build linux || darwin

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func usageOf(dir string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Usage{}, err
	}
	block := uint64(st.Bsize) // signed or not, by the system
	return Usage{Total: int64(st.Blocks * block), Free: int64(st.Bavail * block)}, nil
}

func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

func isHeld(err error) bool    { return errors.Is(err, unix.EWOULDBLOCK) }
func isNoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
