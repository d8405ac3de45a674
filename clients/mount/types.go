package mount

import "time"

// Inode names a node towards the kernel. The file system chooses them: the
// object ID for most, others for the directories that exist only under a cue.
// One file has one node under all its paths, so that it has one page cache.
type Inode uint64

// Root is the node at the mount point; it needs no lookup and is never
// forgotten.
const Root Inode = 1

// Handle names an open file or directory; 0 is none.
type Handle uint64

// LockOwner tells apart the holders of POSIX locks within one mount.
type LockOwner uint64

// NameMax and PathMax are the longest name and path, in bytes.
const (
	NameMax = 255
	PathMax = 4096
)

// Names of the attributes that hold POSIX ACLs.
const (
	AccessACL  = "system.posix_acl_access"
	DefaultACL = "system.posix_acl_default"
)

// Caller is who asks: effective user and group, the thread (for Groups), and
// the umask where the call makes something. Requests of the kernel itself, such
// as writing back pages, have PID 0.
type Caller struct {
	UID, GID, PID, Umask uint32
}

// File types and the bits above the permissions, as in st_mode.
const (
	TypeMask    uint32 = 0o170000
	TypeSocket  uint32 = 0o140000
	TypeSymlink uint32 = 0o120000
	TypeRegular uint32 = 0o100000
	TypeBlock   uint32 = 0o060000
	TypeDir     uint32 = 0o040000
	TypeChar    uint32 = 0o020000
	TypeFifo    uint32 = 0o010000
	SetUID      uint32 = 0o4000
	SetGID      uint32 = 0o2000
	Sticky      uint32 = 0o1000
)

// Attr is what stat shows. Times are nanoseconds since 1970, Blocks are of 512
// bytes, Rdev is coded as Linux does (new_encode_dev).
type Attr struct {
	Ino    uint64
	Size   uint64
	Blocks uint64
	Atime  int64
	Mtime  int64
	Ctime  int64
	Btime  int64
	Mode   uint32
	Nlink  uint32
	UID    uint32
	GID    uint32
	Rdev   uint32
}

// AttrReply is an Attr with the time that the kernel may keep it, which never
// exceeds what is left of the session.
type AttrReply struct {
	Attr  Attr
	Valid time.Duration
}

// Entry answers a lookup. Node with Generation is unique for all time.
type Entry struct {
	Node       Inode
	Generation uint64
	Attr       Attr
	AttrValid  time.Duration
	EntryValid time.Duration
}

// Opened answers an open.
type Opened struct {
	Handle    Handle
	KeepCache bool // the kernel's pages are those of the current content
	DirectIO  bool // no pages at all: each read and write reaches the file system
	CacheDir  bool // the kernel may keep the listing
	// NoFlush says that closing a descriptor need not be told: nothing is
	// written through the handle, and its locks end with its Release.
	NoFlush bool
}

// Which fields of SetAttr count.
const (
	SetMode uint32 = 1 << iota
	SetOwner
	SetGroup
	SetSize
	SetAtime
	SetMtime
	SetCtime
	SetAtimeNow  // with SetAtime: the file system's own now
	SetMtimeNow  // with SetMtime
	SetKillSetID // the caller may not keep set-id bits over this change
)

// SetAttr is a change of attributes. Handle is 0, or the handle of an
// ftruncate, whose permission was checked when it was opened.
type SetAttr struct {
	Valid  uint32
	Mode   uint32 // permission, set-id and sticky bits
	UID    uint32
	GID    uint32
	Handle Handle
	Size   uint64
	Atime  int64
	Mtime  int64
	Ctime  int64
}

// Masks of Access.
const (
	AccessExecute uint32 = 1
	AccessWrite   uint32 = 2
	AccessRead    uint32 = 4
)

// OpenFlags is how a file is opened: an access mode plus bits.
type OpenFlags uint32

// The access modes and bits; the numbers are Cartwheel's own.
const (
	OpenRead      OpenFlags = 0
	OpenWrite     OpenFlags = 1
	OpenReadWrite OpenFlags = 2
	OpenAccess    OpenFlags = 3 // mask of the three above

	OpenAppend    OpenFlags = 1 << (iota + 1)
	OpenTruncate            // empty it
	OpenExclusive           // Create only: it must not exist
	OpenDirect              // O_DIRECT: past every cache
	OpenSync                // O_SYNC or O_DSYNC: each write durable on return
	OpenKillSetID           // with OpenTruncate: clear set-id bits
	OpenExecute             // opened to be run (where the kernel says so)
)

// Reads reports whether the access mode allows reading.
func (f OpenFlags) Reads() bool { return f&OpenAccess != OpenWrite }

// Writes reports whether the access mode allows writing.
func (f OpenFlags) Writes() bool {
	return f&OpenAccess == OpenWrite || f&OpenAccess == OpenReadWrite
}

// WriteFlags is what a write asks for beyond its bytes.
type WriteFlags uint32

// The write flags.
const (
	WriteAppend    WriteFlags = 1 << iota // to the end of the file
	WriteSync                             // durable on return
	WriteDirect                           // past every cache
	WriteKillSetID                        // the writer may not keep set-id bits
	WriteBack                             // pages of a mapping: at offset even where the handle appends
)

// RenameFlags are renameat2's, with Linux's numbers.
type RenameFlags uint32

// The rename flags.
const (
	RenameNoReplace RenameFlags = 1
	RenameExchange  RenameFlags = 2
	RenameWhiteout  RenameFlags = 4
)

// Whence says what Seek looks for.
type Whence uint32

// The two things to look for.
const (
	SeekData Whence = 3
	SeekHole Whence = 4
)

// AllocateMode is fallocate's mode, with Linux's numbers; 0 reserves and extends.
type AllocateMode uint32

// The modes that Linux passes to FUSE.
const (
	AllocateKeepSize  AllocateMode = 0x01
	AllocatePunchHole AllocateMode = 0x02
	AllocateZeroRange AllocateMode = 0x10
)

// XattrFlags says how SetXattr sets.
type XattrFlags uint32

// The xattr flags.
const (
	XattrCreate     XattrFlags = 1 // it must not exist
	XattrReplace    XattrFlags = 2 // it must exist
	XattrKillSetGID XattrFlags = 4 // an access ACL by one outside the file's group: clear set-gid
)

// DirEntry is one name of a listing. Offset is the cookie of the place behind
// it; it stays good while the directory changes.
type DirEntry struct {
	Name   string
	Ino    uint64
	Type   uint32 // as TypeDir and the others
	Offset uint64
}

// LockType is the strength of a lock.
type LockType uint32

// The lock types.
const (
	Unlock LockType = iota
	ReadLock
	WriteLock
)

// LockEnd is the End of a lock that reaches to the end of the file, however
// far that moves.
const LockEnd = 1<<63 - 1

// Lock is an advisory lock on bytes Start to End, both included. Whole is set
// for flock: one lock per open file, apart from the byte ranges.
type Lock struct {
	Owner LockOwner
	Start uint64
	End   uint64
	Type  LockType
	PID   uint32
	Whole bool
}

// Space is what statfs shows.
type Space struct {
	BlockSize   uint32 // unit of the three counts below
	Blocks      uint64
	FreeBlocks  uint64
	AvailBlocks uint64 // to users without privilege
	Files       uint64
	FreeFiles   uint64
	NameMax     uint32
}
