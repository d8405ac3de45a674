// Package dirlock keeps two processes from using one directory: an advisory
// lock on a file named `lock` in it, which the kernel gives back when the
// process ends, however it ends. It does not keep anybody from the files
// themselves. A Lock belongs to one owner, who closes it.
package dirlock

import (
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
)

// Name is that of the file that is locked.
const Name = "lock"

// Lock is a held lock.
type Lock struct{ file *os.File }

// Take makes the directory where it is missing, readable to its owner alone,
// and locks it; Busy where somebody else has it.
func Take(dir string) (*Lock, error) {
	const op fault.Op = "dirlock.Take"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.FromOS(op, dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, Name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.FromOS(op, dir, err)
	}
	busy, err := lock(f)
	if err == nil && !busy {
		return &Lock{f}, nil
	}
	_ = f.Close() // nothing was written
	if busy {
		return nil, fault.E(fault.Busy, op, dir, "another process uses this directory: give each mount its own")
	}
	return nil, fault.FromOS(op, dir, err)
}

// Close gives the lock back.
func (l *Lock) Close() error {
	const op fault.Op = "dirlock.Close"
	return fault.FromOS(op, l.file.Name(), l.file.Close())
}
