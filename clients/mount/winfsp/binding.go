//go:build windows || cgofuse

package winfsp

import (
	"context"
	"sync"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"github.com/winfsp/cgofuse/fuse"
)

// binding implements cgofuse's interfaces over mount.FileSystem.
type binding struct {
	fuse.FileSystemBase
	fs       mount.FileSystem
	notifier *notifier
	foldCase bool // names are found in any case
	windows  bool // names are shown as Windows can say them
	ready    chan struct{}

	mu   sync.Mutex // guards open and next
	open map[uint64]opened
	next uint64
}

// opened is a file or directory in use; it holds one lookup of its node.
type opened struct {
	node   mount.Inode
	handle mount.Handle
	flags  mount.OpenFlags
	path   string // as stored when it was opened
}

var (
	_ fuse.FileSystemInterface = (*binding)(nil)
	_ fuse.FileSystemOpenEx    = (*binding)(nil)
	_ fuse.FileSystemGetpath   = (*binding)(nil)
	_ fuse.FileSystemRename3   = (*binding)(nil)
)

// Init is called when the mount is in place.
func (b *binding) Init() { close(b.ready) }

// Destroy is called when it is gone.
func (b *binding) Destroy() { b.fs.Destroy() }

func (b *binding) keep(o opened) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	b.open[b.next] = o
	return b.next
}

func (b *binding) get(fh uint64) (opened, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.open[fh]
	return o, ok
}

func (b *binding) drop(fh uint64) (opened, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.open[fh]
	delete(b.open, fh)
	return o, ok
}

func who() mount.Caller {
	uid, gid, pid := fuse.Getcontext()
	return mount.Caller{UID: uid, GID: gid, PID: uint32(max(0, pid))}
}

// on runs fn with what a handle or else a path leads to.
func (b *binding) on(path string, fh uint64, fn func(context.Context, mount.Caller, mount.Inode, mount.Handle) error) int {
	ctx, c := context.Background(), who()
	if o, ok := b.get(fh); ok {
		return code(fn(ctx, c, o.node, o.handle))
	}
	at, err := b.existing(ctx, c, path)
	if err != nil {
		return code(err)
	}
	defer at.done()
	return code(fn(ctx, c, at.node, 0))
}

// in runs fn with the directory and name of a path whose name may be missing.
func (b *binding) in(path string, fn func(context.Context, mount.Caller, place) error) int {
	ctx, c := context.Background(), who()
	at, err := b.resolve(ctx, c, path)
	if err != nil {
		return code(err)
	}
	defer at.done()
	if at.name == "" {
		return code(fault.E(fault.Busy, opResolve, path, ""))
	}
	return code(fn(ctx, c, at))
}

// fresh is in, for calls that make the name.
func (b *binding) fresh(path string, fn func(context.Context, mount.Caller, place) (mount.Entry, error)) int {
	return b.in(path, func(ctx context.Context, c mount.Caller, at place) error {
		if at.node != 0 {
			return fault.E(fault.Exists, opResolve, path, "")
		}
		e, err := fn(ctx, c, at)
		if err == nil {
			b.fs.Forget(e.Node, 1)
		}
		return err
	})
}

func timespec(ns int64) fuse.Timespec {
	sec, rest := ns/1e9, ns%1e9
	if rest < 0 {
		sec, rest = sec-1, rest+1e9
	}
	return fuse.Timespec{Sec: sec, Nsec: rest}
}

func putStat(out *fuse.Stat_t, a *mount.Attr) {
	*out = fuse.Stat_t{
		Ino: a.Ino, Mode: a.Mode, Nlink: a.Nlink, Uid: a.UID, Gid: a.GID, Rdev: uint64(a.Rdev), Size: int64(a.Size),
		Atim: timespec(a.Atime), Mtim: timespec(a.Mtime), Ctim: timespec(a.Ctime), Birthtim: timespec(a.Btime),
		Blksize: 64 << 10, Blocks: int64(a.Blocks),
	}
}

func openFlags(flags int) mount.OpenFlags {
	out := mount.OpenFlags(flags & fuse.O_ACCMODE)
	if flags&fuse.O_APPEND != 0 {
		out |= mount.OpenAppend
	}
	if flags&fuse.O_TRUNC != 0 {
		out |= mount.OpenTruncate
	}
	if flags&fuse.O_EXCL != 0 {
		out |= mount.OpenExclusive
	}
	return out
}
