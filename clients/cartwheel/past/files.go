package past

import (
	"context"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// notCopied has the caller read and write instead.
var notCopied = fault.E(fault.NotSupported, "past.CopyRange", "", "bytes of the past are read and written")

// file returns an open file.
func (f *FileSystem) file(op fault.Op, id mount.Handle) (*handle, error) {
	if h := f.opened.get(id); h != nil && h.attr != nil {
		return h, nil
	}
	return nil, fault.E(fault.BadHandle, op, "", "")
}

// Open implements mount.Files.
func (f *FileSystem) Open(ctx context.Context, who mount.Caller, id mount.Inode, flags mount.OpenFlags) (mount.Opened, error) {
	if !isPast(id) {
		return f.Inner.Open(ctx, who, id, flags)
	}
	n := f.table.get(id)
	switch {
	case n == nil:
		return mount.Opened{}, staleNode
	case flags.Writes() || flags&mount.OpenTruncate != 0:
		return mount.Opened{}, readOnly("past.Open")
	}
	ctx, done := within(ctx, n)
	defer done()
	a, err := f.attr(ctx, n)
	if err == nil && a.Content == nil {
		a, err = f.fetch(ctx, n)
	}
	switch {
	case err != nil:
		return mount.Opened{}, err
	case a.Mode&mount.TypeMask != mount.TypeRegular:
		return mount.Opened{}, fault.E(fault.Invalid, "past.Open", n.object.String(), "it is no regular file")
	}
	f.table.open(id, 1)
	return mount.Opened{Handle: f.opened.add(&handle{node: n, attr: a}), KeepCache: flags&mount.OpenDirect == 0,
		DirectIO: flags&mount.OpenDirect != 0, NoFlush: true}, nil
}

// Read implements mount.Files.
func (f *FileSystem) Read(ctx context.Context, who mount.Caller, id mount.Inode, hid mount.Handle, offset int64, buf []byte) (int, error) {
	const op fault.Op = "past.Read"
	if !isPast(id) {
		return f.Inner.Read(ctx, who, id, hid, offset, buf)
	}
	h, err := f.file(op, hid)
	if err != nil {
		return 0, err
	}
	if offset < 0 {
		return 0, fault.E(fault.Invalid, op, "", "")
	}
	if uint64(offset) >= h.attr.Size {
		return 0, nil
	}
	ctx, done := within(ctx, h.node)
	defer done()
	buf = buf[:min(uint64(len(buf)), h.attr.Size-uint64(offset))]
	read := 0
	for read < len(buf) {
		at := uint64(offset) + uint64(read)
		data, from, err := f.block(ctx, h, at)
		if err != nil {
			return 0, fault.Wrap(fault.IO, op, h.node.object.String(), err)
		}
		read += copy(buf[read:], data[at-from:])
	}
	return read, nil
}

// block returns the block of a file that a byte is in, and where it begins.
func (f *FileSystem) block(ctx context.Context, h *handle, at uint64) (data []byte, from uint64, err error) {
	c := h.attr.Content
	switch {
	case c == nil || c.Withheld:
		return nil, 0, fault.E(fault.Permission, "past.block", h.node.object.String(), "its content may not be read")
	case len(c.Root) == 0:
		data, err = f.blocks.get(ctx, blockKey{object: h.node.object, at: h.node.at}, func() ([]byte, error) { return f.small(ctx, h) })
	default:
		root := rootOf(h)
		from = at / rangeBytes * rangeBytes
		data, err = f.blocks.get(ctx, blockKey{root: root.Address, index: at / rangeBytes}, func() ([]byte, error) {
			a, err := f.rangeOf(ctx, h, content.Query{Root: root, Offset: from, Length: min(rangeBytes, root.Size-from), Data: true})
			return a.Data, err
		})
	}
	if err == nil && at-from >= uint64(len(data)) {
		err = fault.E(fault.Corrupt, "past.block", h.node.object.String(), "fewer bytes came than the file has")
	}
	return data, from, err
}

// rootOf is the manifest of a file that has one.
func rootOf(h *handle) chunk.Root {
	c := h.attr.Content
	return chunk.Root{Address: chunk.Address(c.Root), Height: uint8(c.Height), Size: h.attr.Size, Stored: c.Stored}
}

// small asks for content that came with attributes and is not kept any more.
func (f *FileSystem) small(ctx context.Context, h *handle) ([]byte, error) {
	a, err := f.ask(ctx, h.node, false)
	return a.GetContent().GetInline(), err
}

// rangeOf reads a range of a version. Where a user's ticket for the version has run out,
// it gets a new one, once.
func (f *FileSystem) rangeOf(ctx context.Context, h *handle, q content.Query) (content.Answer, error) {
	ctx, cancel := f.opt.Remotely(ctx)
	defer cancel()
	a, err := f.opt.Range(ctx, h.node.object, q)
	if fault.Is(err, fault.Permission) {
		if _, again := f.fetch(ctx, h.node); again == nil {
			a, err = f.opt.Range(ctx, h.node.object, q)
		}
	}
	if fault.Is(err, fault.Missing) {
		err = fault.Wrap(fault.Stale, "past.Read", h.node.object.String(), err) // it was collected: no longer retained
	}
	return a, err
}

// ReadPieces implements mount.PieceReader.
func (f *FileSystem) ReadPieces(ctx context.Context, who mount.Caller, id mount.Inode, h mount.Handle, offset int64, buf []byte) ([][]byte, int, error) {
	if !isPast(id) {
		return f.Inner.ReadPieces(ctx, who, id, h, offset, buf)
	}
	n, err := f.Read(ctx, who, id, h, offset, buf)
	return nil, n, err
}

// Flush implements mount.Files.
func (f *FileSystem) Flush(ctx context.Context, who mount.Caller, id mount.Inode, h mount.Handle, owner mount.LockOwner) error {
	if isPast(id) {
		return nil
	}
	return f.Inner.Flush(ctx, who, id, h, owner)
}

// Release implements mount.Files.
func (f *FileSystem) Release(id mount.Inode, h mount.Handle, owner mount.LockOwner, unlock bool) {
	if !isPast(id) {
		f.Inner.Release(id, h, owner, unlock)
		return
	}
	if f.opened.remove(h) != nil {
		f.table.open(id, -1)
	}
}

// Fsync implements mount.Files.
func (f *FileSystem) Fsync(ctx context.Context, who mount.Caller, id mount.Inode, h mount.Handle, dataOnly bool) error {
	if isPast(id) {
		return nil
	}
	return f.Inner.Fsync(ctx, who, id, h, dataOnly)
}

// Seek implements mount.Files.
func (f *FileSystem) Seek(ctx context.Context, who mount.Caller, id mount.Inode, hid mount.Handle, offset int64, whence mount.Whence) (int64, error) {
	const op fault.Op = "past.Seek"
	if !isPast(id) {
		return f.Inner.Seek(ctx, who, id, hid, offset, whence)
	}
	h, err := f.file(op, hid)
	switch {
	case err != nil:
		return 0, err
	case offset < 0 || uint64(offset) >= h.attr.Size:
		return 0, fault.E(fault.NoDevice, op, "", "")
	}
	ctx, done := within(ctx, h.node)
	defer done()
	at, err := seek(ctx, f, h, uint64(offset), whence != mount.SeekHole)
	return int64(at), err
}

// seek returns the first byte from an offset on that is data, or that is in a hole; the end
// counts as one. A small file has no holes but that.
func seek(ctx context.Context, f *FileSystem, h *handle, offset uint64, data bool) (uint64, error) {
	const op fault.Op = "past.seek"
	size := h.attr.Size
	switch c := h.attr.Content; {
	case c == nil || c.Withheld:
		return 0, fault.E(fault.Permission, op, h.node.object.String(), "its content may not be read")
	case len(c.Root) == 0 && data:
		return offset, nil
	case len(c.Root) == 0:
		return size, nil
	}
	var list []chunk.Extent
	for at := offset; at < size; {
		a, err := f.rangeOf(ctx, h, content.Query{Root: rootOf(h), Offset: at, Length: size - at, Extents: true})
		if err == nil {
			list, err = chunk.DecodeExtents(list[:0], a.Extents, at)
		}
		if err == nil && len(list) == 0 {
			err = fault.E(fault.Corrupt, op, h.node.object.String(), "an answer has no extents")
		}
		if err != nil {
			return 0, fault.Wrap(fault.IO, op, h.node.object.String(), err)
		}
		for _, x := range list {
			if x.IsHole() != data {
				return x.Offset, nil
			}
			at = x.Offset + x.Length
		}
	}
	if data {
		return 0, fault.E(fault.NoDevice, op, "", "")
	}
	return size, nil
}

// GetLock implements mount.Locks.
func (f *FileSystem) GetLock(ctx context.Context, who mount.Caller, id mount.Inode, h mount.Handle, lock mount.Lock) (mount.Lock, error) {
	if isPast(id) {
		lock.Type = mount.Unlock
		return lock, nil
	}
	return f.Inner.GetLock(ctx, who, id, h, lock)
}

// SetLock implements mount.Locks. What nobody can change is locked for reading without
// asking anybody; there is no other lock on it.
func (f *FileSystem) SetLock(ctx context.Context, who mount.Caller, id mount.Inode, h mount.Handle, lock mount.Lock, wait bool) error {
	if !isPast(id) {
		return f.Inner.SetLock(ctx, who, id, h, lock, wait)
	}
	if lock.Type == mount.WriteLock {
		return fault.E(fault.NoLocks, "past.SetLock", "", "what is below .Snapshot can be locked for reading alone")
	}
	return nil
}
