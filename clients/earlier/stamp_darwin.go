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
	return Stamp{Number: s.Ino, Links: uint64(s.Nlink), Owner: [2]uint32{s.Uid, s.Gid}, Changed: s.Ctimespec.Nano(), Device: uint64(uint32(s.Rdev))}
}
