//go:build linux || darwin

// Package gofuse binds mount.FileSystem to the kernels of Linux and macOS
// through go-fuse's raw protocol, request by request: it translates numbers,
// flags and errors and keeps no state but the queue of notifications. It is
// not a cache and not a policy. Requests run at once, each on a goroutine: on
// Linux those of a connection of its own, elsewhere go-fuse's; on Linux small
// reads that the file system can begin are answered by who brings the bytes.
// Notifications go out from workers of their own, never inside a request. Pages
// that the file system gives the kernel (Fill) go out at once, and notices about
// them wait.
package gofuse

import (
	"context"
	"syscall"
	"time"

	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// binding implements fuse.RawFileSystem.
type binding struct {
	fuse.RawFileSystem // answers ENOSYS to what is not bound, such as ioctl
	fs                 mount.FileSystem
	notifier           mount.Notifier
	nameless           mount.NamelessCreator // nil: not offered
	copier             mount.RangeCopier     // nil: not offered
	pieces             mount.PieceReader     // nil: not offered
	starter            mount.ReadStarter     // nil: not offered
	// vector answers a read, of this number, with pieces of memory.
	vector func(request uint64, pieces [][]byte) fuse.ReadResult
}

var _ fuse.RawFileSystem = (*binding)(nil)

func newBinding(fs mount.FileSystem, n mount.Notifier) *binding {
	b := &binding{RawFileSystem: fuse.NewDefaultRawFileSystem(), fs: fs, notifier: n}
	b.nameless, _ = fs.(mount.NamelessCreator)
	b.copier, _ = fs.(mount.RangeCopier)
	b.pieces, _ = fs.(mount.PieceReader)
	b.starter, _ = fs.(mount.ReadStarter)
	return b
}

// String names the binding in go-fuse's messages.
func (b *binding) String() string { return "cartwheel" }

// OnUnmount ends the file system after the last request.
func (b *binding) OnUnmount() { b.fs.Destroy() }

// request is the context of one call: it ends when the kernel interrupts it.
// A channel alone fits an interface without an allocation.
type request struct{ done <-chan struct{} }

// Deadline implements context.Context; the file system sets limits of its own.
func (r request) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (r request) Done() <-chan struct{} { return r.done }

// Err implements context.Context.
func (r request) Err() error {
	select {
	case <-r.done:
		return context.Canceled
	default:
		return nil
	}
}

// Value implements context.Context.
func (r request) Value(any) any { return nil }

func caller(h *fuse.InHeader, umask uint32) mount.Caller {
	return mount.Caller{UID: h.Uid, GID: h.Gid, PID: h.Pid, Umask: umask & 0o777}
}

func status(err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	return fuse.Status(mount.Errno(err))
}

func node(h *fuse.InHeader) mount.Inode { return mount.Inode(h.NodeId) }

const second = int64(time.Second)

// split cuts nanoseconds into seconds and the rest, rounding down, so that
// times before 1970 come out right.
func split(ns int64) (uint64, uint32) {
	sec, rest := ns/second, ns%second
	if rest < 0 {
		sec, rest = sec-1, rest+second
	}
	return uint64(sec), uint32(rest)
}

func join(sec uint64, nsec uint32) int64 { return int64(sec)*second + int64(nsec) }

// blockSize is what stat suggests for reads and writes.
const blockSize = 64 << 10

func putAttr(out *fuse.Attr, a *mount.Attr) {
	out.Ino = a.Ino
	out.Size = a.Size
	out.Blocks = a.Blocks
	out.Atime, out.Atimensec = split(a.Atime)
	out.Mtime, out.Mtimensec = split(a.Mtime)
	out.Ctime, out.Ctimensec = split(a.Ctime)
	out.Mode = a.Mode
	out.Nlink = a.Nlink
	out.Uid = a.UID
	out.Gid = a.GID
	out.Rdev = a.Rdev
	out.Blksize = blockSize
	putBirth(out, a.Btime)
}

func putEntry(out *fuse.EntryOut, e *mount.Entry) {
	out.NodeId = uint64(e.Node)
	out.Generation = e.Generation
	out.SetEntryTimeout(max(0, e.EntryValid))
	if e.Node != 0 {
		out.SetAttrTimeout(max(0, e.AttrValid))
		putAttr(&out.Attr, &e.Attr)
	}
}

func putReply(out *fuse.AttrOut, r *mount.AttrReply) {
	out.SetTimeout(max(0, r.Valid))
	putAttr(&out.Attr, &r.Attr)
}

// putOpened answers an open. Descriptors that append go past the kernel's
// pages, because it cuts a write through them at the borders of its pages, and
// then another mount's record could come between the two halves.
func putOpened(out *fuse.OpenOut, o mount.Opened, flags mount.OpenFlags) {
	out.Fh = uint64(o.Handle)
	if flags&mount.OpenAppend != 0 && flags.Writes() {
		o.DirectIO = true
	}
	if o.KeepCache {
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
	}
	if o.DirectIO {
		out.OpenFlags |= fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES
	}
	if o.NoFlush {
		out.OpenFlags |= openNoFlush
	}
	if o.CacheDir {
		out.OpenFlags |= fuse.FOPEN_CACHE_DIR
	}
}

// kernelExecute is the kernel's own bit for opening a file to run it.
const kernelExecute = 0x20

func openFlags(flags uint32) mount.OpenFlags {
	out := mount.OpenFlags(flags & syscall.O_ACCMODE)
	if flags&syscall.O_APPEND != 0 {
		out |= mount.OpenAppend
	}
	if flags&syscall.O_TRUNC != 0 {
		out |= mount.OpenTruncate
	}
	if flags&syscall.O_EXCL != 0 {
		out |= mount.OpenExclusive
	}
	if flags&flagDirect != 0 {
		out |= mount.OpenDirect
	}
	if flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0 {
		out |= mount.OpenSync
	}
	if flags&kernelExecute != 0 && executeKnown {
		out |= mount.OpenExecute
	}
	return out
}
