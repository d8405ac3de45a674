//go:build windows || cgofuse

package winfsp

import (
	"context"
	"strings"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"github.com/winfsp/cgofuse/fuse"
)

// CreateEx implements fuse.FileSystemOpenEx.
func (b *binding) CreateEx(path string, mode uint32, fi *fuse.FileInfo_t) int {
	return b.in(path, func(ctx context.Context, c mount.Caller, at place) error {
		flags := openFlags(fi.Flags)
		e, o, err := b.fs.Create(ctx, c, at.dir, at.name, mode, flags)
		if err == nil {
			b.answer(fi, opened{e.Node, o.Handle, flags, strings.Clone(at.path)}, o)
		}
		return err
	})
}

// OpenEx implements fuse.FileSystemOpenEx. The handle keeps a lookup of its
// own, for the path may lead elsewhere later.
func (b *binding) OpenEx(path string, fi *fuse.FileInfo_t) int {
	return b.in(path, func(ctx context.Context, c mount.Caller, at place) error {
		if at.node == 0 {
			return fault.E(fault.NotFound, opResolve, path, "")
		}
		flags := openFlags(fi.Flags)
		o, err := b.fs.Open(ctx, c, at.node, flags)
		if err != nil {
			return err
		}
		e, err := b.fs.Lookup(ctx, c, at.dir, at.name)
		if err != nil || e.Node != at.node {
			b.fs.Release(at.node, o.Handle, 0, false)
			if err == nil && e.Node != 0 {
				b.fs.Forget(e.Node, 1)
			}
			return fault.E(fault.Stale, opResolve, path, "")
		}
		b.answer(fi, opened{at.node, o.Handle, flags, strings.Clone(at.path)}, o)
		return nil
	})
}

func (b *binding) answer(fi *fuse.FileInfo_t, kept opened, o mount.Opened) {
	fi.Fh = b.keep(kept)
	fi.KeepCache, fi.DirectIo = o.KeepCache, o.DirectIO || kept.flags&mount.OpenAppend != 0
}

// onOpen runs fn with an open handle, and answers a count or an error.
func (b *binding) onOpen(fh uint64, fn func(context.Context, mount.Caller, opened) (int, error)) int {
	o, ok := b.get(fh)
	if !ok {
		return -fuse.EBADF
	}
	n, err := fn(context.Background(), who(), o)
	if err != nil {
		return code(err)
	}
	return n
}

func (b *binding) Read(_ string, buf []byte, offset int64, fh uint64) int {
	return b.onOpen(fh, func(ctx context.Context, c mount.Caller, o opened) (int, error) {
		return b.fs.Read(ctx, c, o.node, o.handle, offset, buf)
	})
}

func (b *binding) Write(_ string, data []byte, offset int64, fh uint64) int {
	return b.onOpen(fh, func(ctx context.Context, c mount.Caller, o opened) (int, error) {
		flags := mount.WriteFlags(0)
		if o.flags&mount.OpenAppend != 0 {
			flags |= mount.WriteAppend
		}
		if c.UID != 0 {
			flags |= mount.WriteKillSetID
		}
		return b.fs.Write(ctx, c, o.node, o.handle, offset, data, flags)
	})
}

func (b *binding) Flush(_ string, fh uint64) int {
	return b.onOpen(fh, func(ctx context.Context, c mount.Caller, o opened) (int, error) {
		return 0, b.fs.Flush(ctx, c, o.node, o.handle, 0)
	})
}

func (b *binding) Fsync(_ string, dataOnly bool, fh uint64) int {
	return b.onOpen(fh, func(ctx context.Context, c mount.Caller, o opened) (int, error) {
		return 0, b.fs.Fsync(ctx, c, o.node, o.handle, dataOnly)
	})
}

func (b *binding) Release(_ string, fh uint64) int {
	if o, ok := b.drop(fh); ok {
		b.fs.Release(o.node, o.handle, 0, false)
		b.fs.Forget(o.node, 1)
	}
	return 0
}

func (b *binding) Opendir(path string) (int, uint64) {
	ctx, c := context.Background(), who()
	at, err := b.existing(ctx, c, path)
	if err != nil {
		return code(err), ^uint64(0)
	}
	defer at.done()
	o, err := b.fs.OpenDir(ctx, c, at.node)
	if err != nil {
		return code(err), ^uint64(0)
	}
	if at.name != "" {
		// The handle keeps a lookup of its own.
		if e, err := b.fs.Lookup(ctx, c, at.dir, at.name); err != nil || e.Node != at.node {
			b.fs.ReleaseDir(at.node, o.Handle)
			return -fuse.ENOENT, ^uint64(0)
		}
	}
	return 0, b.keep(opened{node: at.node, handle: o.Handle, path: strings.Clone(at.path)})
}

// listing hands names to cgofuse, which asks for attributes by itself.
type listing struct {
	b    *binding
	fill func(name string, stat *fuse.Stat_t, offset int64) bool
}

// Add implements mount.DirSink.
func (l *listing) Add(e mount.DirEntry) bool {
	stat := fuse.Stat_t{Ino: e.Ino, Mode: e.Type}
	return l.fill(l.b.shown(e.Name), &stat, int64(e.Offset))
}

// AddPlus implements mount.DirSink; it is never called.
func (l *listing) AddPlus(mount.DirEntry, *mount.Entry) bool { return false }

func (b *binding) Readdir(_ string, fill func(string, *fuse.Stat_t, int64) bool, offset int64, fh uint64) int {
	return b.onOpen(fh, func(ctx context.Context, c mount.Caller, o opened) (int, error) {
		return 0, b.fs.ReadDir(ctx, c, o.node, o.handle, uint64(offset), false, &listing{b, fill})
	})
}

func (b *binding) Fsyncdir(_ string, dataOnly bool, fh uint64) int {
	return b.onOpen(fh, func(ctx context.Context, c mount.Caller, o opened) (int, error) {
		return 0, b.fs.FsyncDir(ctx, c, o.node, o.handle, dataOnly)
	})
}

func (b *binding) Releasedir(_ string, fh uint64) int {
	if o, ok := b.drop(fh); ok {
		b.fs.ReleaseDir(o.node, o.handle)
		if o.node != mount.Root {
			b.fs.Forget(o.node, 1)
		}
	}
	return 0
}
