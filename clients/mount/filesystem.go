// Package mount is the one contract between the client library and the
// kernels: a file system addressed by node, as Linux carries it over FUSE. The
// library implements FileSystem; the packages below bind it to go-fuse (Linux,
// macOS) and to WinFsp (Windows); memfs is an in-memory twin and mounttest the
// suite that every implementation passes. It is not a client of anything: no
// I/O, no cache, no policy. All calls may come at once from many goroutines.
package mount

import "context"

// FileSystem is what a binding calls. Errors are fault errors; their kinds
// become errnos by the tables of this package.
//
// The context of a call ends when the caller was interrupted or the mount went
// away; it is valid, like every buffer handed in, only until the call returns,
// so work that outlives the call must not keep it. A call answers soon after
// its context ends: Interrupted where nothing was done, else its result.
type FileSystem interface {
	Names
	Attributes
	Files
	Directories
	Locks
	Xattrs

	// Init is called once, before any other call, with the way to tell the
	// kernel about changes made elsewhere.
	Init(notifier Notifier)
	// StatFS describes the space of the file system that holds node.
	StatFS(ctx context.Context, c Caller, node Inode) (Space, error)
	// Destroy is called once, after the last other call returned; nodes and
	// handles still known are void.
	Destroy()
}

// Names is the part that changes and follows directory entries. Each Entry
// answered with a Node other than 0 counts as one lookup of that node, which
// stays known until Forget has returned as many.
type Names interface {
	// Lookup finds name in dir. "." and ".." may be asked for. An answer with
	// Node 0 and no error is a negative one that the kernel may keep for
	// EntryValid.
	Lookup(ctx context.Context, c Caller, dir Inode, name string) (Entry, error)
	// Forget gives back count lookups; it must not block.
	Forget(node Inode, count uint64)
	// Mknod makes a regular or special file; mode carries the type. The file
	// system applies c.Umask, unless a default ACL of dir governs.
	Mknod(ctx context.Context, c Caller, dir Inode, name string, mode, rdev uint32) (Entry, error)
	// Mkdir makes a directory, like Mknod.
	Mkdir(ctx context.Context, c Caller, dir Inode, name string, mode uint32) (Entry, error)
	// Symlink makes a symbolic link to target.
	Symlink(ctx context.Context, c Caller, dir Inode, name, target string) (Entry, error)
	// Readlink reads a symbolic link; the answer belongs to the caller of it.
	Readlink(ctx context.Context, c Caller, node Inode) ([]byte, error)
	// Link gives node another name.
	Link(ctx context.Context, c Caller, node, dir Inode, name string) (Entry, error)
	// Unlink removes the name of anything but a directory. Open handles of it
	// stay good.
	Unlink(ctx context.Context, c Caller, dir Inode, name string) error
	// Rmdir removes an empty directory.
	Rmdir(ctx context.Context, c Caller, dir Inode, name string) error
	// Rename moves a name, atomically.
	Rename(ctx context.Context, c Caller, dir Inode, name string, newDir Inode, newName string, flags RenameFlags) error
}

// Attributes is the part that reads and changes what stat shows.
type Attributes interface {
	// GetAttr reads attributes; h is 0 or an open handle of node.
	GetAttr(ctx context.Context, c Caller, node Inode, h Handle) (AttrReply, error)
	// SetAttr changes the attributes named in change.Valid and answers all.
	// It applies every rule of chown, chmod and truncate about set-id bits and
	// ACL masks.
	SetAttr(ctx context.Context, c Caller, node Inode, change SetAttr) (AttrReply, error)
	// Access checks permission for mask, a sum of AccessRead, AccessWrite and
	// AccessExecute. Bindings call it only where the kernel does not check.
	Access(ctx context.Context, c Caller, node Inode, mask uint32) error
}

// Files is the part that works on content.
type Files interface {
	// Create makes and opens a regular file in one step. If the name exists
	// and flags lack OpenExclusive, it is opened instead, and truncated if
	// flags carry OpenTruncate.
	Create(ctx context.Context, c Caller, dir Inode, name string, mode uint32, flags OpenFlags) (Entry, Opened, error)
	// Open opens a file; OpenTruncate empties it in the same step.
	Open(ctx context.Context, c Caller, node Inode, flags OpenFlags) (Opened, error)
	// Read fills buf from offset on and answers how much it filled: less than
	// len(buf) only at the end of the file.
	Read(ctx context.Context, c Caller, node Inode, h Handle, offset int64, buf []byte) (int, error)
	// Write writes all of data, or answers an error. With WriteAppend the
	// data go to the end of the file, whatever offset says; if that end is
	// elsewhere than offset, the file system invalidates the node, because the
	// kernel's pages and size are then wrong.
	Write(ctx context.Context, c Caller, node Inode, h Handle, offset int64, data []byte, flags WriteFlags) (int, error)
	// Flush is called at each close of a descriptor, maybe several times for
	// one handle; it reports what earlier writes came to, and gives up the
	// POSIX locks of owner.
	Flush(ctx context.Context, c Caller, node Inode, h Handle, owner LockOwner) error
	// Release ends a handle. It gives up every lock still held through it (an
	// open file description's, of which no Flush tells), and with unlock its
	// flock. It may come late, when owner names a newer open with an flock of
	// its own, which stays.
	Release(node Inode, h Handle, owner LockOwner, unlock bool)
	// Fsync returns when everything written is on disk at the required
	// members; with dataOnly, when the content is.
	Fsync(ctx context.Context, c Caller, node Inode, h Handle, dataOnly bool) error
	// Seek finds the next data or hole at or after offset; NoDevice where
	// there is none.
	Seek(ctx context.Context, c Caller, node Inode, h Handle, offset int64, whence Whence) (int64, error)
	// Allocate reserves, punches or zeroes a range.
	Allocate(ctx context.Context, c Caller, node Inode, h Handle, offset, length int64, mode AllocateMode) error
}

// Directories is the part that lists.
type Directories interface {
	// OpenDir opens a directory for reading.
	OpenDir(ctx context.Context, c Caller, node Inode) (Opened, error)
	// ReadDir hands the entries behind cookie offset to sink, from 0 at the
	// start, until sink refuses one or there are no more. With plus it hands
	// over looked-up entries; the ones that sink took count as lookups. Names
	// present throughout come exactly once between rewinds.
	ReadDir(ctx context.Context, c Caller, node Inode, h Handle, offset uint64, plus bool, sink DirSink) error
	// ReleaseDir ends a directory handle.
	ReleaseDir(node Inode, h Handle)
	// FsyncDir returns when every change of the directory is on disk.
	FsyncDir(ctx context.Context, c Caller, node Inode, h Handle, dataOnly bool) error
}

// DirSink takes directory entries. It keeps nothing that it was handed.
type DirSink interface {
	// Add takes an entry, or reports that it has no room for it.
	Add(e DirEntry) bool
	// AddPlus takes an entry with its lookup. If entry.Node is 0 the kernel
	// learns the name only. If it reports no room, no lookup counts.
	AddPlus(e DirEntry, entry *Entry) bool
}

// Locks is the part of advisory locks, both byte ranges and whole-file flocks.
type Locks interface {
	// GetLock answers a lock that conflicts with lock, or one of type Unlock.
	GetLock(ctx context.Context, c Caller, node Inode, h Handle, lock Lock) (Lock, error)
	// SetLock takes, changes or gives up a lock. Where it conflicts it answers
	// Again, or with wait blocks until it can be had, until ctx ends
	// (Interrupted), or until a cycle of waiting is found (Deadlock).
	SetLock(ctx context.Context, c Caller, node Inode, h Handle, lock Lock, wait bool) error
}

// Xattrs is the part of extended attributes, POSIX ACLs among them: these are
// the attributes AccessACL and DefaultACL in Linux's binary form, and setting
// the first changes the mode bits too.
type Xattrs interface {
	// GetXattr reads a value into buf and answers its size. If buf is empty
	// it answers the size only; if buf is too small, TooSmall.
	GetXattr(ctx context.Context, c Caller, node Inode, name string, buf []byte) (int, error)
	// ListXattr reads all names, each ended by a zero byte, like GetXattr.
	ListXattr(ctx context.Context, c Caller, node Inode, buf []byte) (int, error)
	// SetXattr sets a value, which the file system copies.
	SetXattr(ctx context.Context, c Caller, node Inode, name string, value []byte, flags XattrFlags) error
	// RemoveXattr removes one; NoAttribute where there is none.
	RemoveXattr(ctx context.Context, c Caller, node Inode, name string) error
}

// NamelessCreator is implemented by file systems that can make a file with no
// name (O_TMPFILE), which Link may name later unless OpenExclusive was given.
type NamelessCreator interface {
	CreateNameless(ctx context.Context, c Caller, dir Inode, mode uint32, flags OpenFlags) (Entry, Opened, error)
}

// PathWalker is implemented by file systems that know a quicker way to the end
// of a path than one Lookup after the other. It answers as the last Lookup
// does, and with NotFound or NotDirectory where the path cannot go on.
type PathWalker interface {
	Walk(ctx context.Context, c Caller, from Inode, path string) (Entry, error)
}

// PieceReader is implemented by file systems that can answer a read with memory
// of their own.
type PieceReader interface {
	// ReadPieces is Read, but where pieces is not nil the bytes are these, end
	// to end, and not in buf. Nobody changes them any more.
	ReadPieces(ctx context.Context, c Caller, node Inode, h Handle, offset int64, buf []byte) (pieces [][]byte, n int, err error)
}

// ReadStarter is implemented by file systems that can begin a read and answer it
// later, from wherever the bytes come in.
type ReadStarter interface {
	// StartRead begins to read up to size bytes and returns soon: it waits for
	// nobody. False: nothing began, and then is not called. Otherwise then is
	// called exactly once, perhaps before StartRead returns and within seconds
	// at most, by somebody who must not be kept: with the bytes, good until it
	// returns and fewer than size only at the end of the file, or with false,
	// and then the read is for Read. No caller can interrupt it.
	StartRead(c Caller, node Inode, h Handle, offset int64, size int, then func(data []byte, ok bool)) bool
}

// RangeCopier is implemented by file systems that copy between files without
// the bytes passing through the kernel.
type RangeCopier interface {
	// CopyRange answers how much it copied, which may be less than length; 0 at
	// the end of what is read. NotSupported says that nothing was done and that
	// the caller may read and write instead.
	CopyRange(ctx context.Context, c Caller, from Inode, fromHandle Handle, fromOffset int64,
		to Inode, toHandle Handle, toOffset int64, length int64) (int64, error)
}

// Notifier tells the kernel what changed elsewhere. Its methods only queue,
// never block and never fail, so they may be called with locks held and inside
// a call of FileSystem; a worker of the binding delivers in order. Nodes that
// the kernel does not know are skipped. What is queued twice is delivered once;
// when much is queued, ranges collapse into their files as a whole. Names never
// collapse, because a kernel cannot drop all of a directory's: the file system
// notifies only about those that it has told the kernel of.
type Notifier interface {
	// InvalidateInode drops the attributes of a node, and its pages in
	// [offset, offset+length); length 0 or less: to the end of the file;
	// offset < 0: attributes only.
	InvalidateInode(node Inode, offset, length int64)
	// InvalidateEntry drops what the kernel knows of a name, be it there or not.
	InvalidateEntry(dir Inode, name string)
	// Delete says that a name was removed, so that watchers hear of it.
	Delete(dir, child Inode, name string)
	// Drained calls done once everything queued before it was delivered or
	// dropped with the mount. done must not block.
	Drained(done func())
}

// Releaser is implemented by notifiers of kernels that can be asked to give
// nodes up.
type Releaser interface {
	// Release asks the kernel to give up a node that no process uses, which it
	// then forgets (Names.Forget). Nodes in use stay. The name is one that led to
	// the node, for kernels that give names up and not nodes; it is empty for a
	// directory, which such a kernel keeps. Like the methods of Notifier, Release
	// only queues.
	Release(node, dir Inode, name string)
}

// Filler is implemented by notifiers of kernels that take content unasked.
type Filler interface {
	// Fill makes data the kernel's pages of a node from its beginning on, if
	// still holds, and reports whether it did. It returns when the kernel has
	// taken or refused them, so it is not called with locks held.
	//
	// From before still is asked until Fill returns, InvalidateInode drops no
	// pages of the node. So what changes the content first makes still false
	// and then calls InvalidateInode: either nothing is filled, or what was
	// filled is dropped. Pages that a process writes to would be lost: nobody
	// may have the node open for writing, nor change its size, meanwhile.
	Fill(node Inode, data []byte, still func() bool) bool
}
