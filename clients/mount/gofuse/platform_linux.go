package gofuse

import (
	"syscall"

	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	flagDirect   = syscall.O_DIRECT
	executeKnown = true
	openNoFlush  = fuse.FOPEN_NOFLUSH

	seekData = 3
	seekHole = 4
)

// capabilities are asked for beyond go-fuse's own:
//   - the umask left to the file system, which knows of default ACLs;
//   - set-id bits left to it too, told by flags, which also spares the kernel a
//     look for security.capability at every write but a new file's first;
//   - the flag that an ACL must clear set-gid;
//   - lookups of "." and ".." for NFS;
//   - readdirplus only where somebody stats what they list;
//   - direct I/O in parallel, and shared mappings beside it.
//
// Not O_TRUNC inside open: the kernel would ask for that before it sees that
// the file is a program which runs. It opens, and then sets the size to 0,
// which takes no more round trips to a node: an open needs none.
const capabilities = fuse.CAP_DONT_MASK | fuse.CAP_HANDLE_KILLPRIV_V2 |
	fuse.CAP_SETXATTR_EXT | fuse.CAP_EXPORT_SUPPORT | fuse.CAP_READDIRPLUS_AUTO |
	fuse.CAP_ASYNC_DIO | fuse.CAP_DIRECT_IO_ALLOW_MMAP

func aclKillsSetGID(in *fuse.SetXAttrIn) bool {
	return in.SetXAttrFlags&fuse.SETXATTR_ACL_KILL_SGID != 0
}

func putBirth(*fuse.Attr, int64) {}

func renameFlags(flags uint32) mount.RenameFlags { return mount.RenameFlags(flags) }
