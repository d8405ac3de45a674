package trace

import "fmt"

// Kind is a kind of file operation, as mount.FileSystem has them, or of work
// that nobody waits for.
type Kind uint8

// The kinds. ReadAhead and WriteBehind are work of the client's own that no
// operation waited for; Background is everything else: keep-alives, answers to
// revocations, claims.
const (
	Lookup Kind = iota
	GetAttr
	SetAttr
	Access
	Readlink
	Create
	Mknod
	Mkdir
	Symlink
	Link
	Unlink
	Rmdir
	Rename
	Open
	Read
	Write
	Flush
	Release
	Fsync
	Seek
	Allocate
	CopyRange
	OpenDir
	ReadDir
	GetLock
	SetLock
	GetXattr
	ListXattr
	SetXattr
	RemoveXattr
	StatFS
	ReadAhead
	WriteBehind
	Background
	kinds
)

func (k Kind) String() string {
	names := [kinds]string{
		"lookup", "getattr", "setattr", "access", "readlink", "create", "mknod", "mkdir", "symlink", "link", "unlink", "rmdir", "rename",
		"open", "read", "write", "flush", "release", "fsync", "seek", "allocate", "copy", "opendir", "readdir", "getlock", "setlock",
		"getxattr", "listxattr", "setxattr", "removexattr", "statfs", "read-ahead", "write-behind", "background",
	}
	if k < kinds {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}
