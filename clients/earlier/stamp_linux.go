package earlier

import (
	"io/fs"
	"syscall"
)

func stampOf(info fs.FileInfo) stamp {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	return stamp{number: s.Ino, links: unsigned(s.Nlink), owner: [2]uint32{s.Uid, s.Gid}, changed: s.Ctim.Nano(), device: unsigned(s.Rdev)}
}

// unsigned converts a field whose type differs between machines.
func unsigned[T uint32 | int32 | uint64](v T) uint64 { return uint64(v) }
