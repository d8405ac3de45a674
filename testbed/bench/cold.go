package bench

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropAttribute, when set on anything in a Cartwheel mount, drops that mount's
// own caches; other file systems refuse it, which is fine.
const dropAttribute = "user.cartwheel.drop-caches"

// cold drops the kernel's caches, and the mount's where there are some.
func (p place) cold() error {
	unix.Sync()
	_ = unix.Setxattr(p.dir, dropAttribute, []byte("1"), 0) // refused by file systems that have no such cache
	f, err := os.OpenFile("/proc/sys/vm/drop_caches", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("3\n"); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
