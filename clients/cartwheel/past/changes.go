package past

import (
	"context"

	"cartwheel.dev/clients/mount"
)

// Every change of the past is refused: those that name an inode below .Snapshot in any
// place. A name from or to there, too, is no other file system's, but nothing can move.

// Mknod implements mount.Names.
func (f *FileSystem) Mknod(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode, rdev uint32) (mount.Entry, error) {
	if isPast(dir) {
		return mount.Entry{}, readOnly("past.Mknod")
	}
	return f.Inner.Mknod(ctx, who, dir, name, mode, rdev)
}

// Mkdir implements mount.Names.
func (f *FileSystem) Mkdir(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode uint32) (mount.Entry, error) {
	if isPast(dir) {
		return mount.Entry{}, readOnly("past.Mkdir")
	}
	return f.Inner.Mkdir(ctx, who, dir, name, mode)
}

// Symlink implements mount.Names.
func (f *FileSystem) Symlink(ctx context.Context, who mount.Caller, dir mount.Inode, name, target string) (mount.Entry, error) {
	if isPast(dir) {
		return mount.Entry{}, readOnly("past.Symlink")
	}
	return f.Inner.Symlink(ctx, who, dir, name, target)
}

// Link implements mount.Names.
func (f *FileSystem) Link(ctx context.Context, who mount.Caller, id, dir mount.Inode, name string) (mount.Entry, error) {
	if isPast(id) || isPast(dir) {
		return mount.Entry{}, readOnly("past.Link")
	}
	return f.Inner.Link(ctx, who, id, dir, name)
}

// Unlink implements mount.Names.
func (f *FileSystem) Unlink(ctx context.Context, who mount.Caller, dir mount.Inode, name string) error {
	if isPast(dir) {
		return readOnly("past.Unlink")
	}
	return f.Inner.Unlink(ctx, who, dir, name)
}

// Rmdir implements mount.Names.
func (f *FileSystem) Rmdir(ctx context.Context, who mount.Caller, dir mount.Inode, name string) error {
	if isPast(dir) {
		return readOnly("past.Rmdir")
	}
	return f.Inner.Rmdir(ctx, who, dir, name)
}

// Rename implements mount.Names.
func (f *FileSystem) Rename(ctx context.Context, who mount.Caller, dir mount.Inode, name string, to mount.Inode, newName string, flags mount.RenameFlags) error {
	if isPast(dir) || isPast(to) {
		return readOnly("past.Rename")
	}
	return f.Inner.Rename(ctx, who, dir, name, to, newName, flags)
}

// SetAttr implements mount.Attributes.
func (f *FileSystem) SetAttr(ctx context.Context, who mount.Caller, id mount.Inode, change mount.SetAttr) (mount.AttrReply, error) {
	if isPast(id) {
		return mount.AttrReply{}, readOnly("past.SetAttr")
	}
	return f.Inner.SetAttr(ctx, who, id, change)
}

// Create implements mount.Files.
func (f *FileSystem) Create(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	if isPast(dir) {
		return mount.Entry{}, mount.Opened{}, readOnly("past.Create")
	}
	return f.Inner.Create(ctx, who, dir, name, mode, flags)
}

// CreateNameless implements mount.NamelessCreator.
func (f *FileSystem) CreateNameless(ctx context.Context, who mount.Caller, dir mount.Inode, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	if isPast(dir) {
		return mount.Entry{}, mount.Opened{}, readOnly("past.CreateNameless")
	}
	return f.Inner.CreateNameless(ctx, who, dir, mode, flags)
}

// Write implements mount.Files.
func (f *FileSystem) Write(ctx context.Context, who mount.Caller, id mount.Inode, h mount.Handle, offset int64, data []byte, flags mount.WriteFlags) (int, error) {
	if isPast(id) {
		return 0, readOnly("past.Write")
	}
	return f.Inner.Write(ctx, who, id, h, offset, data, flags)
}

// Allocate implements mount.Files.
func (f *FileSystem) Allocate(ctx context.Context, who mount.Caller, id mount.Inode, h mount.Handle, offset, length int64, mode mount.AllocateMode) error {
	if isPast(id) {
		return readOnly("past.Allocate")
	}
	return f.Inner.Allocate(ctx, who, id, h, offset, length, mode)
}

// CopyRange implements mount.RangeCopier. From the past bytes are read and written: a
// version that is not retained much longer lends no references.
func (f *FileSystem) CopyRange(ctx context.Context, who mount.Caller, from mount.Inode, fromHandle mount.Handle, fromOffset int64,
	to mount.Inode, toHandle mount.Handle, toOffset int64, length int64) (int64, error) {
	switch {
	case isPast(to):
		return 0, readOnly("past.CopyRange")
	case isPast(from):
		return 0, notCopied
	}
	return f.Inner.CopyRange(ctx, who, from, fromHandle, fromOffset, to, toHandle, toOffset, length)
}

// SetXattr implements mount.Xattrs.
func (f *FileSystem) SetXattr(ctx context.Context, who mount.Caller, id mount.Inode, name string, value []byte, flags mount.XattrFlags) error {
	if isPast(id) {
		return readOnly("past.SetXattr")
	}
	return f.Inner.SetXattr(ctx, who, id, name, value, flags)
}

// RemoveXattr implements mount.Xattrs.
func (f *FileSystem) RemoveXattr(ctx context.Context, who mount.Caller, id mount.Inode, name string) error {
	if isPast(id) {
		return readOnly("past.RemoveXattr")
	}
	return f.Inner.RemoveXattr(ctx, who, id, name)
}
