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
	return stamp{number: s.Ino, links: uint64(s.Nlink), owner: [2]uint32{s.Uid, s.Gid}, changed: s.Ctimespec.Nano(), device: uint64(uint32(s.Rdev))}
}
