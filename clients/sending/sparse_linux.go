package sending

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// seekData is lseek's SEEK_DATA.
const seekData = 3

// nextData returns where data begins in a file from an offset on, or its size where there is
// none. A system that does not tell has data everywhere.
func nextData(f *os.File, offset, size uint64) uint64 {
	at, err := unix.Seek(int(f.Fd()), int64(offset), seekData)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size
	case err != nil || at < int64(offset):
		return offset
	}
	return uint64(at)
}
