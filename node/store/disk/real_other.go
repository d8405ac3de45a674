//go:build !linux

package disk

import (
	"errors"
	"os"
)

// hasSyncedFlag tells that there is no flag: each write is followed by a sync.
const hasSyncedFlag = false

var errNoUsage = errors.New("the space of this file system cannot be asked here")

func systemFlags(Mode) int { return 0 }

func dataSync(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return f.Truncate(size)
}

// syncDirectory does nothing: these systems journal names by themselves.
func syncDirectory(string) error { return nil }

func usageOf(string) (Usage, error) { return Usage{}, errNoUsage }

// lockFile relies on nothing: two daemons meet at Pebble's own lock instead.
func lockFile(*os.File) error { return nil }

func isHeld(error) bool    { return false }
func isNoSpace(error) bool { return false }
