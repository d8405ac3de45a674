//go:build linux || darwin

package sending

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// nextData returns where data begins in a file from an offset on, or its size where there is
// none. A system that does not tell has data everywhere.
func nextData(f *os.File, offset, size uint64) uint64 {
	at, err := unix.Seek(int(f.Fd()), int64(offset), unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size
	case err != nil || at < int64(offset):
		return offset
	}
	return uint64(at)
}
