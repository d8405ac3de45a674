package traced

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
)

// Create implements mount.Files.
func (f *FileSystem) Create(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	ctx, b := f.begin(ctx, trace.Create, who, dir, name)
	defer b.end()
	return f.Inner.Create(ctx, who, dir, name, mode, flags)
}

// CreateNameless implements mount.NamelessCreator.
func (f *FileSystem) CreateNameless(ctx context.Context, who mount.Caller, dir mount.Inode, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	ctx, b := f.begin(ctx, trace.Create, who, dir, "")
	defer b.end()
	return f.Inner.CreateNameless(ctx, who, dir, mode, flags)
}

// Open implements mount.Files.
func (f *FileSystem) Open(ctx context.Context, who mount.Caller, node mount.Inode, flags mount.OpenFlags) (mount.Opened, error) {
	ctx, b := f.begin(ctx, trace.Open, who, node, "")
	defer b.end()
	return f.Inner.Open(ctx, who, node, flags)
}

// Read implements mount.Files.
func (f *FileSystem) Read(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset int64, buf []byte) (int, error) {
	ctx, b := f.begin(ctx, trace.Read, who, node, "")
	defer b.end()
	return f.Inner.Read(ctx, who, node, h, offset, buf)
}

// StartRead implements mount.ReadStarter. A watched read takes the usual way.
func (f *FileSystem) StartRead(who mount.Caller, _ mount.Inode, id mount.Handle, offset int64, size int, then func(data []byte, ok bool)) bool {
	o := f.recorder.Begin(trace.Read, trace.Caller{UID: who.UID, PID: who.PID})
	if o.Watched() {
		return false
	}
	return f.startRead(o, id, offset, size, func(data []byte, ok bool) {
		if ok {
			f.recorder.End(o, nil)
		}
		then(data, ok)
	})
}

// ReadPieces implements mount.PieceReader.
func (f *FileSystem) ReadPieces(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset int64, buf []byte) ([][]byte, int, error) {
	ctx, b := f.begin(ctx, trace.Read, who, node, "")
	defer b.end()
	return f.Inner.ReadPieces(ctx, who, node, h, offset, buf)
}

// Write implements mount.Files.
func (f *FileSystem) Write(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset int64, data []byte, flags mount.WriteFlags) (int, error) {
	ctx, b := f.begin(ctx, trace.Write, who, node, "")
	defer b.end()
	return f.Inner.Write(ctx, who, node, h, offset, data, flags)
}

// Flush implements mount.Files.
func (f *FileSystem) Flush(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, owner mount.LockOwner) error {
	ctx, b := f.begin(ctx, trace.Flush, who, node, "")
	defer b.end()
	return f.Inner.Flush(ctx, who, node, h, owner)
}

// Fsync implements mount.Files.
func (f *FileSystem) Fsync(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, dataOnly bool) error {
	ctx, b := f.begin(ctx, trace.Fsync, who, node, "")
	defer b.end()
	return f.Inner.Fsync(ctx, who, node, h, dataOnly)
}

// Seek implements mount.Files.
func (f *FileSystem) Seek(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset int64, whence mount.Whence) (int64, error) {
	ctx, b := f.begin(ctx, trace.Seek, who, node, "")
	defer b.end()
	return f.Inner.Seek(ctx, who, node, h, offset, whence)
}

// Allocate implements mount.Files.
func (f *FileSystem) Allocate(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset, length int64, mode mount.AllocateMode) error {
	ctx, b := f.begin(ctx, trace.Allocate, who, node, "")
	defer b.end()
	return f.Inner.Allocate(ctx, who, node, h, offset, length, mode)
}

// CopyRange implements mount.RangeCopier.
func (f *FileSystem) CopyRange(ctx context.Context, who mount.Caller, from mount.Inode, fromID mount.Handle, at int64,
	to mount.Inode, toID mount.Handle, offset, length int64) (int64, error) {
	ctx, b := f.begin(ctx, trace.CopyRange, who, to, "")
	defer b.end()
	return f.Inner.CopyRange(ctx, who, from, fromID, at, to, toID, offset, length)
}

// OpenDir implements mount.Directories.
func (f *FileSystem) OpenDir(ctx context.Context, who mount.Caller, node mount.Inode) (mount.Opened, error) {
	ctx, b := f.begin(ctx, trace.OpenDir, who, node, "")
	defer b.end()
	return f.Inner.OpenDir(ctx, who, node)
}

// ReadDir implements mount.Directories.
func (f *FileSystem) ReadDir(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset uint64, plus bool, sink mount.DirSink) error {
	ctx, b := f.begin(ctx, trace.ReadDir, who, node, "")
	defer b.end()
	return f.Inner.ReadDir(ctx, who, node, h, offset, plus, sink)
}

// GetLock implements mount.Locks.
func (f *FileSystem) GetLock(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, lock mount.Lock) (mount.Lock, error) {
	ctx, b := f.begin(ctx, trace.GetLock, who, node, "")
	defer b.end()
	return f.Inner.GetLock(ctx, who, node, h, lock)
}

// SetLock implements mount.Locks.
func (f *FileSystem) SetLock(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, lock mount.Lock, wait bool) error {
	ctx, b := f.begin(ctx, trace.SetLock, who, node, "")
	defer b.end()
	return f.Inner.SetLock(ctx, who, node, h, lock, wait)
}
