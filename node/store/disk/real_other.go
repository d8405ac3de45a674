//go:build !linux

package disk

import "os"

// hasSyncedFlag tells that there is no flag: each write is followed by a sync.
const hasSyncedFlag = false

func systemFlags(Mode) int { return 0 }

func dataSync(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return f.Truncate(size)
}

// SyncDirectory does nothing: these systems journal names by themselves.
func SyncDirectory(string) error { return nil }
