package bench

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// place is one folder under measurement.
type place struct {
	dir string
	opt Options
	out func(work, unit string, value float64)
}

// timed returns how long fn took, in seconds.
func timed(fn func() error) (float64, error) {
	start := time.Now()
	err := fn()
	return time.Since(start).Seconds(), err
}

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
