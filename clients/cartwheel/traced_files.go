package cartwheel

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
)

// Create implements mount.Files.
func (t traced) Create(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	ctx, b := t.begin(ctx, trace.Create, who, dir, name)
	defer b.end()
	return t.Client.Create(ctx, who, dir, name, mode, flags)
}

// CreateNameless implements mount.NamelessCreator.
func (t traced) CreateNameless(ctx context.Context, who mount.Caller, dir mount.Inode, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	ctx, b := t.begin(ctx, trace.Create, who, dir, "")
	defer b.end()
	return t.Client.CreateNameless(ctx, who, dir, mode, flags)
}

// Open implements mount.Files.
func (t traced) Open(ctx context.Context, who mount.Caller, node mount.Inode, flags mount.OpenFlags) (mount.Opened, error) {
	ctx, b := t.begin(ctx, trace.Open, who, node, "")
	defer b.end()
	return t.Client.Open(ctx, who, node, flags)
}

// Read implements mount.Files.
func (t traced) Read(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset int64, buf []byte) (int, error) {
	ctx, b := t.begin(ctx, trace.Read, who, node, "")
	defer b.end()
	return t.Client.Read(ctx, who, node, h, offset, buf)
}

// StartRead implements mount.ReadStarter. What somebody watches takes the usual way.
func (t traced) StartRead(who mount.Caller, _ mount.Inode, id mount.Handle, offset int64, size int, then func(data []byte, ok bool)) bool {
	o := t.recorder.Begin(trace.Read, trace.Caller{UID: who.UID, PID: who.PID})
	if o.Watched() {
		return false
	}
	h, err := t.toRead(id, offset)
	return err == nil && h.content.StartRead(o, size, uint64(offset), func(data []byte, ok bool) {
		if ok {
			t.recorder.End(o, nil)
		}
		then(data, ok)
	})
}

// ReadPieces implements mount.PieceReader.
func (t traced) ReadPieces(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset int64, buf []byte) ([][]byte, int, error) {
	ctx, b := t.begin(ctx, trace.Read, who, node, "")
	defer b.end()
	return t.Client.ReadPieces(ctx, who, node, h, offset, buf)
}

// Write implements mount.Files.
func (t traced) Write(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset int64, data []byte, flags mount.WriteFlags) (int, error) {
	ctx, b := t.begin(ctx, trace.Write, who, node, "")
	defer b.end()
	return t.Client.Write(ctx, who, node, h, offset, data, flags)
}

// Flush implements mount.Files.
func (t traced) Flush(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, owner mount.LockOwner) error {
	ctx, b := t.begin(ctx, trace.Flush, who, node, "")
	defer b.end()
	return t.Client.Flush(ctx, who, node, h, owner)
}

// Fsync implements mount.Files.
func (t traced) Fsync(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, dataOnly bool) error {
	ctx, b := t.begin(ctx, trace.Fsync, who, node, "")
	defer b.end()
	return t.Client.Fsync(ctx, who, node, h, dataOnly)
}

// Seek implements mount.Files.
func (t traced) Seek(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset int64, whence mount.Whence) (int64, error) {
	ctx, b := t.begin(ctx, trace.Seek, who, node, "")
	defer b.end()
	return t.Client.Seek(ctx, who, node, h, offset, whence)
}

// Allocate implements mount.Files.
func (t traced) Allocate(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset, length int64, mode mount.AllocateMode) error {
	ctx, b := t.begin(ctx, trace.Allocate, who, node, "")
	defer b.end()
	return t.Client.Allocate(ctx, who, node, h, offset, length, mode)
}

// CopyRange implements mount.RangeCopier.
func (t traced) CopyRange(ctx context.Context, who mount.Caller, from mount.Inode, fromID mount.Handle, at int64,
	to mount.Inode, toID mount.Handle, offset, length int64) (int64, error) {
	ctx, b := t.begin(ctx, trace.CopyRange, who, to, "")
	defer b.end()
	return t.Client.CopyRange(ctx, who, from, fromID, at, to, toID, offset, length)
}

// OpenDir implements mount.Directories.
func (t traced) OpenDir(ctx context.Context, who mount.Caller, node mount.Inode) (mount.Opened, error) {
	ctx, b := t.begin(ctx, trace.OpenDir, who, node, "")
	defer b.end()
	return t.Client.OpenDir(ctx, who, node)
}

// ReadDir implements mount.Directories.
func (t traced) ReadDir(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, offset uint64, plus bool, sink mount.DirSink) error {
	ctx, b := t.begin(ctx, trace.ReadDir, who, node, "")
	defer b.end()
	return t.Client.ReadDir(ctx, who, node, h, offset, plus, sink)
}

// GetLock implements mount.Locks.
func (t traced) GetLock(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, lock mount.Lock) (mount.Lock, error) {
	ctx, b := t.begin(ctx, trace.GetLock, who, node, "")
	defer b.end()
	return t.Client.GetLock(ctx, who, node, h, lock)
}

// SetLock implements mount.Locks.
func (t traced) SetLock(ctx context.Context, who mount.Caller, node mount.Inode, h mount.Handle, lock mount.Lock, wait bool) error {
	ctx, b := t.begin(ctx, trace.SetLock, who, node, "")
	defer b.end()
	return t.Client.SetLock(ctx, who, node, h, lock, wait)
}
