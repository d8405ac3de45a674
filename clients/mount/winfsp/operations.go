//go:build windows || cgofuse

package winfsp

import (
	"context"
	"strings"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"github.com/winfsp/cgofuse/fuse"
)

// Statfs implements fuse.FileSystemInterface, as do the methods below.
func (b *binding) Statfs(path string, out *fuse.Statfs_t) int {
	return b.on(path, 0, func(ctx context.Context, c mount.Caller, node mount.Inode, _ mount.Handle) error {
		s, err := b.fs.StatFS(ctx, c, node)
		*out = fuse.Statfs_t{
			Bsize: uint64(s.BlockSize), Frsize: uint64(s.BlockSize), Blocks: s.Blocks, Bfree: s.FreeBlocks, Bavail: s.AvailBlocks,
			Files: s.Files, Ffree: s.FreeFiles, Favail: s.FreeFiles, Namemax: uint64(s.NameMax),
		}
		return err
	})
}

func (b *binding) Mknod(path string, mode uint32, dev uint64) int {
	return b.fresh(path, func(ctx context.Context, c mount.Caller, at place) (mount.Entry, error) {
		return b.fs.Mknod(ctx, c, at.dir, at.name, mode, uint32(dev))
	})
}

func (b *binding) Mkdir(path string, mode uint32) int {
	return b.fresh(path, func(ctx context.Context, c mount.Caller, at place) (mount.Entry, error) {
		return b.fs.Mkdir(ctx, c, at.dir, at.name, mode)
	})
}

func (b *binding) Symlink(target, path string) int {
	return b.fresh(path, func(ctx context.Context, c mount.Caller, at place) (mount.Entry, error) {
		return b.fs.Symlink(ctx, c, at.dir, at.name, target)
	})
}

func (b *binding) Link(oldPath, path string) int {
	return b.fresh(path, func(ctx context.Context, c mount.Caller, at place) (mount.Entry, error) {
		from, err := b.existing(ctx, c, oldPath)
		if err != nil {
			return mount.Entry{}, err
		}
		defer from.done()
		return b.fs.Link(ctx, c, from.node, at.dir, at.name)
	})
}

func (b *binding) Readlink(path string) (int, string) {
	target := ""
	status := b.on(path, 0, func(ctx context.Context, c mount.Caller, node mount.Inode, _ mount.Handle) error {
		t, err := b.fs.Readlink(ctx, c, node)
		target = string(t)
		return err
	})
	return status, target
}

func (b *binding) Unlink(path string) int {
	return b.in(path, func(ctx context.Context, c mount.Caller, at place) error {
		return b.fs.Unlink(ctx, c, at.dir, at.name)
	})
}

func (b *binding) Rmdir(path string) int {
	return b.in(path, func(ctx context.Context, c mount.Caller, at place) error {
		return b.fs.Rmdir(ctx, c, at.dir, at.name)
	})
}

func (b *binding) Rename(oldPath, newPath string) int { return b.Rename3(oldPath, newPath, 0) }

// Rename3 implements fuse.FileSystemRename3. Where case is ignored, a name may
// be renamed to itself in another case, which replaces nothing.
func (b *binding) Rename3(oldPath, newPath string, flags uint32) int {
	return b.in(oldPath, func(ctx context.Context, c mount.Caller, from place) error {
		to, err := b.resolve(ctx, c, newPath)
		if err != nil {
			return err
		}
		defer to.done()
		if to.name == "" {
			return fault.E(fault.Busy, opResolve, newPath, "")
		}
		name := to.name
		if from.node == to.node && b.foldCase {
			name = b.stored(newPath[strings.LastIndexByte(newPath, '/')+1:])
		}
		return b.fs.Rename(ctx, c, from.dir, from.name, to.dir, name, mount.RenameFlags(flags))
	})
}

func (b *binding) setAttr(path string, fh uint64, change mount.SetAttr) int {
	return b.on(path, fh, func(ctx context.Context, c mount.Caller, node mount.Inode, h mount.Handle) error {
		if change.Valid&mount.SetSize != 0 {
			change.Handle = h
		}
		_, err := b.fs.SetAttr(ctx, c, node, change)
		return err
	})
}

func (b *binding) Chmod(path string, mode uint32) int {
	return b.setAttr(path, 0, mount.SetAttr{Valid: mount.SetMode, Mode: mode & 0o7777})
}

func (b *binding) Chown(path string, uid, gid uint32) int {
	change := mount.SetAttr{UID: uid, GID: gid, Valid: mount.SetKillSetID}
	if uid != ^uint32(0) {
		change.Valid |= mount.SetOwner
	}
	if gid != ^uint32(0) {
		change.Valid |= mount.SetGroup
	}
	return b.setAttr(path, 0, change)
}

// The nanoseconds that stand for now and for no change.
const (
	utimeNow  = 1<<30 - 1
	utimeOmit = 1<<30 - 2
)

func (b *binding) Utimens(path string, times []fuse.Timespec) int {
	change := mount.SetAttr{}
	if len(times) < 2 {
		change.Valid = mount.SetAtime | mount.SetMtime | mount.SetAtimeNow | mount.SetMtimeNow
		return b.setAttr(path, 0, change)
	}
	change.Atime = setTime(&change, times[0], mount.SetAtime, mount.SetAtimeNow)
	change.Mtime = setTime(&change, times[1], mount.SetMtime, mount.SetMtimeNow)
	return b.setAttr(path, 0, change)
}

func setTime(change *mount.SetAttr, t fuse.Timespec, set, now uint32) int64 {
	switch t.Nsec {
	case utimeOmit:
		return 0
	case utimeNow:
		set |= now
	}
	change.Valid |= set
	return t.Sec*1e9 + t.Nsec
}

func (b *binding) Truncate(path string, size int64, fh uint64) int {
	return b.setAttr(path, fh, mount.SetAttr{Valid: mount.SetSize, Size: uint64(size)})
}

func (b *binding) Access(path string, mask uint32) int {
	if mask&fuse.DELETE_OK != 0 && b.windows {
		return b.mayDelete(path)
	}
	return b.on(path, 0, func(ctx context.Context, c mount.Caller, node mount.Inode, _ mount.Handle) error {
		return b.fs.Access(ctx, c, node, mask&7)
	})
}

// mayDelete answers for WinFsp, which drops the errors of the removal itself.
func (b *binding) mayDelete(path string) int {
	return b.in(path, func(ctx context.Context, c mount.Caller, at place) error {
		if at.node == 0 {
			return fault.E(fault.NotFound, opResolve, path, "")
		}
		return b.fs.Access(ctx, c, at.dir, mount.AccessWrite|mount.AccessExecute)
	})
}

func (b *binding) Getattr(path string, out *fuse.Stat_t, fh uint64) int {
	return b.on(path, fh, func(ctx context.Context, c mount.Caller, node mount.Inode, h mount.Handle) error {
		r, err := b.fs.GetAttr(ctx, c, node, h)
		putStat(out, &r.Attr)
		return err
	})
}

// Getpath implements fuse.FileSystemGetpath: the path in the case that it is
// stored in, which Explorer and git show.
func (b *binding) Getpath(path string, fh uint64) (int, string) {
	if o, ok := b.get(fh); ok {
		return 0, b.shownPath(o.path)
	}
	at, err := b.existing(context.Background(), who(), path)
	if err != nil {
		return code(err), ""
	}
	defer at.done()
	return 0, b.shownPath(at.path)
}

func (b *binding) shownPath(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = b.shown(name)
	}
	return strings.Join(names, "/")
}

func (b *binding) Setxattr(path, name string, value []byte, flags int) int {
	return b.on(path, 0, func(ctx context.Context, c mount.Caller, node mount.Inode, _ mount.Handle) error {
		return b.fs.SetXattr(ctx, c, node, name, value, mount.XattrFlags(flags)&(mount.XattrCreate|mount.XattrReplace))
	})
}

func (b *binding) Getxattr(path, name string) (int, []byte) {
	var value []byte
	status := b.on(path, 0, func(ctx context.Context, c mount.Caller, node mount.Inode, _ mount.Handle) error {
		var err error
		value, err = whole(func(buf []byte) (int, error) { return b.fs.GetXattr(ctx, c, node, name, buf) })
		return err
	})
	return status, value
}

func (b *binding) Listxattr(path string, fill func(name string) bool) int {
	return b.on(path, 0, func(ctx context.Context, c mount.Caller, node mount.Inode, _ mount.Handle) error {
		list, err := whole(func(buf []byte) (int, error) { return b.fs.ListXattr(ctx, c, node, buf) })
		for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
			if name != "" && !fill(name) {
				return fault.E(fault.TooSmall, opResolve, path, "")
			}
		}
		return err
	})
}

// whole reads an attribute of unknown size.
func whole(read func([]byte) (int, error)) ([]byte, error) {
	buf := make([]byte, 4096)
	for {
		n, err := read(buf)
		if fault.Is(err, fault.TooSmall) && len(buf) < 1<<20 {
			buf = make([]byte, max(n, 2*len(buf)))
			continue
		}
		return buf[:min(n, len(buf))], err
	}
}

func (b *binding) Removexattr(path, name string) int {
	return b.on(path, 0, func(ctx context.Context, c mount.Caller, node mount.Inode, _ mount.Handle) error {
		return b.fs.RemoveXattr(ctx, c, node, name)
	})
}
