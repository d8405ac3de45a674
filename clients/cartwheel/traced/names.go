package traced

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
)

// Lookup implements mount.Names.
func (f *FileSystem) Lookup(ctx context.Context, who mount.Caller, dir mount.Inode, name string) (mount.Entry, error) {
	ctx, b := f.begin(ctx, trace.Lookup, who, dir, name)
	defer b.end()
	return f.Inner.Lookup(ctx, who, dir, name)
}

// Walk implements mount.PathWalker; a walk counts as one lookup.
func (f *FileSystem) Walk(ctx context.Context, who mount.Caller, from mount.Inode, path string) (mount.Entry, error) {
	ctx, b := f.begin(ctx, trace.Lookup, who, from, path)
	defer b.end()
	return f.Inner.Walk(ctx, who, from, path)
}

// Readlink implements mount.Names.
func (f *FileSystem) Readlink(ctx context.Context, who mount.Caller, node mount.Inode) ([]byte, error) {
	ctx, b := f.begin(ctx, trace.Readlink, who, node, "")
	defer b.end()
	return f.Inner.Readlink(ctx, who, node)
}

// Mknod implements mount.Names.
func (f *FileSystem) Mknod(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode, rdev uint32) (mount.Entry, error) {
	ctx, b := f.begin(ctx, trace.Mknod, who, dir, name)
	defer b.end()
	return f.Inner.Mknod(ctx, who, dir, name, mode, rdev)
}

// Mkdir implements mount.Names.
func (f *FileSystem) Mkdir(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode uint32) (mount.Entry, error) {
	ctx, b := f.begin(ctx, trace.Mkdir, who, dir, name)
	defer b.end()
	return f.Inner.Mkdir(ctx, who, dir, name, mode)
}

// Symlink implements mount.Names.
func (f *FileSystem) Symlink(ctx context.Context, who mount.Caller, dir mount.Inode, name, target string) (mount.Entry, error) {
	ctx, b := f.begin(ctx, trace.Symlink, who, dir, name)
	defer b.end()
	return f.Inner.Symlink(ctx, who, dir, name, target)
}

// Link implements mount.Names.
func (f *FileSystem) Link(ctx context.Context, who mount.Caller, node, dir mount.Inode, name string) (mount.Entry, error) {
	ctx, b := f.begin(ctx, trace.Link, who, dir, name)
	defer b.end()
	return f.Inner.Link(ctx, who, node, dir, name)
}

// Unlink implements mount.Names.
func (f *FileSystem) Unlink(ctx context.Context, who mount.Caller, dir mount.Inode, name string) error {
	ctx, b := f.begin(ctx, trace.Unlink, who, dir, name)
	defer b.end()
	return f.Inner.Unlink(ctx, who, dir, name)
}

// Rmdir implements mount.Names.
func (f *FileSystem) Rmdir(ctx context.Context, who mount.Caller, dir mount.Inode, name string) error {
	ctx, b := f.begin(ctx, trace.Rmdir, who, dir, name)
	defer b.end()
	return f.Inner.Rmdir(ctx, who, dir, name)
}

// Rename implements mount.Names.
func (f *FileSystem) Rename(ctx context.Context, who mount.Caller, dir mount.Inode, name string, to mount.Inode, newName string, flags mount.RenameFlags) error {
	ctx, b := f.begin(ctx, trace.Rename, who, to, newName)
	defer b.end()
	return f.Inner.Rename(ctx, who, dir, name, to, newName, flags)
}

// GetAttr implements mount.Attributes.
func (f *FileSystem) GetAttr(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle) (mount.AttrReply, error) {
	ctx, b := f.begin(ctx, trace.GetAttr, who, node, "")
	defer b.end()
	return f.Inner.GetAttr(ctx, who, node, h)
}

// SetAttr implements mount.Attributes.
func (f *FileSystem) SetAttr(ctx context.Context, who mount.Caller, node mount.Inode, change mount.SetAttr) (mount.AttrReply, error) {
	ctx, b := f.begin(ctx, trace.SetAttr, who, node, "")
	defer b.end()
	return f.Inner.SetAttr(ctx, who, node, change)
}

// Access implements mount.Attributes.
func (f *FileSystem) Access(ctx context.Context, who mount.Caller, node mount.Inode, mask uint32) error {
	ctx, b := f.begin(ctx, trace.Access, who, node, "")
	defer b.end()
	return f.Inner.Access(ctx, who, node, mask)
}

// StatFS implements mount.FileSystem.
func (f *FileSystem) StatFS(ctx context.Context, who mount.Caller, node mount.Inode) (mount.Space, error) {
	ctx, b := f.begin(ctx, trace.StatFS, who, node, "")
	defer b.end()
	return f.Inner.StatFS(ctx, who, node)
}

// GetXattr implements mount.Xattrs.
func (f *FileSystem) GetXattr(ctx context.Context, who mount.Caller, node mount.Inode, name string, buf []byte) (int, error) {
	if isTrace(name) {
		return f.readXattr(name, buf)
	}
	ctx, b := f.begin(ctx, trace.GetXattr, who, node, "")
	defer b.end()
	return f.Inner.GetXattr(ctx, who, node, name, buf)
}

// ListXattr implements mount.Xattrs.
func (f *FileSystem) ListXattr(ctx context.Context, who mount.Caller, node mount.Inode, buf []byte) (int, error) {
	ctx, b := f.begin(ctx, trace.ListXattr, who, node, "")
	defer b.end()
	return f.Inner.ListXattr(ctx, who, node, buf)
}

// SetXattr implements mount.Xattrs.
func (f *FileSystem) SetXattr(ctx context.Context, who mount.Caller, node mount.Inode, name string, value []byte, flags mount.XattrFlags) error {
	if isTrace(name) {
		return f.setXattr(who, name, string(value))
	}
	ctx, b := f.begin(ctx, trace.SetXattr, who, node, "")
	defer b.end()
	return f.Inner.SetXattr(ctx, who, node, name, value, flags)
}

// RemoveXattr implements mount.Xattrs.
func (f *FileSystem) RemoveXattr(ctx context.Context, who mount.Caller, node mount.Inode, name string) error {
	ctx, b := f.begin(ctx, trace.RemoveXattr, who, node, "")
	defer b.end()
	return f.Inner.RemoveXattr(ctx, who, node, name)
}
