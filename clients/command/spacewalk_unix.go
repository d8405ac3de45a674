//go:build linux || darwin

package command

import (
	"io/fs"
	"syscall"
)

// objectOf tells of what the system says of a file.
func objectOf(info fs.FileInfo) (object, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return object{}, false
	}
	const block = 512 // of st_blocks, by POSIX
	return object{number: s.Ino, device: unsigned(s.Dev), links: unsigned(s.Nlink), stored: unsigned(s.Blocks) * block}, true
}

// unsigned converts a field whose type differs between systems.
func unsigned[T uint16 | int32 | uint32 | int64 | uint64](v T) uint64 { return uint64(v) }
