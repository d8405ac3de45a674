package earlier

import (
	"io/fs"
	"syscall"
)

func StampOf(info fs.FileInfo) Stamp {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Stamp{}
	}
	return Stamp{Number: s.Ino, Links: unsigned(s.Nlink), Owner: [2]uint32{s.Uid, s.Gid}, Changed: s.Ctim.Nano(), Device: unsigned(s.Rdev)}
}

// unsigned converts a field whose type differs between machines.
func unsigned[T uint32 | int32 | uint64](v T) uint64 { return uint64(v) }
