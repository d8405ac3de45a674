package memfs

import (
	"context"

	"cartwheel.dev/clients/mount"
)

// OpenDir implements mount.Directories.
func (v *View) OpenDir(_ context.Context, c mount.Caller, node mount.Inode) (mount.Opened, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, err := v.directory(node)
	if err != nil {
		return mount.Opened{}, err
	}
	if err := d.may(who(c), mount.AccessRead); err != nil {
		return mount.Opened{}, err
	}
	return v.handle(d, mount.OpenRead), nil
}

// ReadDir implements mount.Directories.
func (v *View) ReadDir(_ context.Context, _ mount.Caller, _ mount.Inode, h mount.Handle, offset uint64, plus bool, sink mount.DirSink) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, err := v.file(h)
	if err != nil {
		return err
	}
	d := f.inode
	if d.attr.Nlink == 0 {
		return nil
	}
	add := func(e mount.DirEntry, i *inode) bool {
		if !plus {
			return sink.Add(e)
		}
		if e.Offset < firstCookie {
			return sink.AddPlus(e, &mount.Entry{})
		}
		looked := v.entry(i)
		if sink.AddPlus(e, &looked) {
			return true
		}
		i.lookups--
		return false
	}
	d.accessed(v.now())
	if offset < 1 && !add(dirent(".", d, 1), d) {
		return nil
	}
	if parent := v.inodes[d.parent]; offset < 2 && parent != nil && !add(dirent("..", parent, 2), parent) {
		return nil
	}
	d.entries.after(offset, func(e *entry) bool { return add(dirent(e.name, e.inode, e.cookie), e.inode) })
	return nil
}

// ReleaseDir implements mount.Directories.
func (v *View) ReleaseDir(node mount.Inode, h mount.Handle) { v.Release(node, h, 0, false) }

// FsyncDir implements mount.Directories.
func (v *View) FsyncDir(ctx context.Context, c mount.Caller, node mount.Inode, h mount.Handle, dataOnly bool) error {
	return v.Fsync(ctx, c, node, h, dataOnly)
}

func dirent(name string, i *inode, cookie uint64) mount.DirEntry {
	return mount.DirEntry{Name: name, Ino: i.attr.Ino, Type: i.kind(), Offset: cookie}
}
