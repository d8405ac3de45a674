package cartwheel

import (
	"context"
	"math"

	"cartwheel.dev/clients/cartwheel/creation"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/replies"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

var _ mount.PieceReader = (*Client)(nil)

// Create implements mount.Files.
func (c *Client) Create(ctx context.Context, who mount.Caller, id mount.Inode, name string, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Entry{}, mount.Opened{}, staleNode
	}
	for try := 1; ; try++ {
		m, err := c.maker.Make(ctx, creation.Request{Dir: dir, Cues: cues, Name: name, Who: who, Call: cue.Open, Writes: flags.Writes(), Create: &pb.Create{
			Mode: mode&^mount.TypeMask | mount.TypeRegular, Exclusive: flags&mount.OpenExclusive != 0,
			Truncate: flags&mount.OpenTruncate != 0, Open: true}})
		if err == nil && m.Attr.Mode&mount.TypeMask != mount.TypeRegular {
			// The kernel opens what is no regular file itself.
			err = fault.E(fault.Stale, "cartwheel.Create", name, "is no regular file")
		}
		if err != nil {
			return mount.Entry{}, mount.Opened{}, err
		}
		e := c.replies.Named(replies.In{Node: id, Dir: dir, Cues: cues}, name, m.Attr)
		b := c.nodes.CountOpen(ids.Object(m.Attr.Object), flags)
		b.Dir, b.Name = dir, name
		if err = c.openExisting(ctx, who, &b, &m, cues, flags); err == nil {
			if m.Existed {
				e.Attr, _ = c.replies.Stat(m.Attr)
			}
			return e, c.opened(ctx, who, b, m.Attr, flags, cues), nil
		}
		if l, isLast := c.holds.EndOpen(b.Object, flags); isLast {
			c.holds.Release(l)
		}
		c.nodes.Forget(e.Node, 1)
		if !fault.Is(err, fault.Stale) || try == lookTries { // else it was removed meanwhile
			return mount.Entry{}, mount.Opened{}, err
		}
		c.names.Forget(dir)
	}
}

// openExisting truncates a file that was there before Create, if it has to, and
// returns in m what it is like now that its open is counted. One that was made
// needs neither: its active heard of the open with that.
func (c *Client) openExisting(ctx context.Context, who mount.Caller, b *inodes.Opening, m *creation.Made, cues cue.Set, flags mount.OpenFlags) (err error) {
	if m.Existed && flags&mount.OpenTruncate != 0 && m.Attr.Size > 0 { // it lives in another slice
		if m.Attr, err = c.opens.Truncate(ctx, who, b.Object, cues); err != nil {
			return err
		}
	}
	if _, own := c.names.Own(b.Object); own {
		return nil
	}
	if !m.Existed {
		if _, _, ok := c.names.Attr(b.Object); !ok {
			c.engine.Invalidate(b.Object) // it may have changed before the open was counted
		}
		return nil
	}
	hold := c.engine.Hold(b.Object)
	defer hold.Release()
	m.Attr, err = c.opens.Attr(ctx, b.Object, hold)
	return err
}

// Read implements mount.Files.
func (c *Client) Read(ctx context.Context, _ mount.Caller, _ mount.Inode, id mount.Handle, offset int64, buf []byte) (int, error) {
	h, err := c.toRead(id, offset)
	if err != nil {
		return 0, err
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	return h.content.ReadAt(out, buf, uint64(offset))
}

// ReadPieces implements mount.PieceReader.
func (c *Client) ReadPieces(ctx context.Context, _ mount.Caller, _ mount.Inode, id mount.Handle, offset int64, buf []byte) ([][]byte, int, error) {
	h, err := c.toRead(id, offset)
	if err != nil {
		return nil, 0, err
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	return h.content.ReadPieces(out, buf, uint64(offset))
}

// toRead finds a handle; O_DIRECT reads what is current, lease or not.
func (c *Client) toRead(id mount.Handle, offset int64) (*handle, error) {
	h, err := c.handles.file(id)
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fault.E(fault.Invalid, "cartwheel.Read", "", "")
	}
	if h.flags&mount.OpenDirect != 0 {
		if _, _, ok := c.names.Attr(h.object); !ok {
			c.engine.Invalidate(h.object)
		}
	}
	return h, nil
}

// Write implements mount.Files.
func (c *Client) Write(ctx context.Context, _ mount.Caller, id mount.Inode, hid mount.Handle, offset int64, data []byte, flags mount.WriteFlags) (int, error) {
	h, err := c.handles.file(hid)
	if err != nil {
		return 0, err
	}
	if offset < 0 || offset > math.MaxInt64-int64(len(data)) {
		return 0, fault.E(fault.TooLarge, "cartwheel.Write", "", "")
	}
	if err := c.locks.Check(hid, h.object); err != nil {
		return 0, err
	}
	out, cancel := c.limits.UntilTaken(ctx)
	defer cancel()
	if flags&mount.WriteKillSetID != 0 {
		if err := c.opens.DropSetID(out, h.object, h.writer, &h.asked); err != nil {
			return 0, err
		}
	}
	if flags&mount.WriteAppend != 0 {
		var at uint64
		if at, err = h.content.Append(out, data); err == nil && at != uint64(offset) {
			c.kernel.Invalidate(id, 0, 0)
		}
	} else {
		err = h.content.WriteAt(out, data, uint64(offset))
	}
	if err == nil && (flags&(mount.WriteSync|mount.WriteDirect) != 0 || h.flags&(mount.OpenSync|mount.OpenDirect) != 0) {
		err = c.flushed(ctx, h, h.content.Flush)
	}
	if err != nil {
		return 0, err
	}
	return len(data), nil
}

// Flush implements mount.Files.
func (c *Client) Flush(ctx context.Context, _ mount.Caller, _ mount.Inode, id mount.Handle, owner mount.LockOwner) error {
	h, err := c.handles.file(id)
	if err != nil {
		return err
	}
	if told := c.deferred.Of(h.object) == nil; h.flags.Writes() && !c.holds.IsRemoved(h.object) || !told {
		err = c.flushed(ctx, h, h.content.Flush)
	}
	c.locks.UnlockOwner(ctx, h.object, owner)
	return err
}

// flushed tells the active of a handle's file, with what flush commits of it.
func (c *Client) flushed(ctx context.Context, h *handle, flush func(context.Context) error) error {
	slow, done := c.limits.Patiently(ctx)
	err := flush(slow)
	done()
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	if told := c.deferred.Publish(out, h.object); err == nil {
		err = told
	}
	if refused := c.deferred.Refusal(h.object); err == nil {
		err = refused
	}
	return err
}

// Release implements mount.Files.
func (c *Client) Release(_ mount.Inode, id mount.Handle, _ mount.LockOwner, unlock bool) {
	h := c.handles.remove(id)
	if h == nil || h.content == nil {
		return
	}
	c.locks.Release(h.object, id, unlock)
	if l, isLast := c.holds.EndOpen(h.object, h.flags); isLast {
		h.content.Forsake()
		c.holds.Release(l)
		return
	}
	h.content.Close()
}

// Fsync implements mount.Files.
func (c *Client) Fsync(ctx context.Context, _ mount.Caller, _ mount.Inode, id mount.Handle, _ bool) error {
	h, err := c.handles.file(id)
	if err != nil {
		return err
	}
	return c.flushed(ctx, h, h.content.Sync)
}

// Seek implements mount.Files.
func (c *Client) Seek(ctx context.Context, _ mount.Caller, _ mount.Inode, id mount.Handle, offset int64, whence mount.Whence) (int64, error) {
	h, err := c.handles.file(id)
	if err != nil {
		return 0, err
	}
	if offset < 0 {
		return 0, fault.E(fault.NoDevice, "cartwheel.Seek", "", "")
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	var at uint64
	if whence == mount.SeekData {
		at, err = h.content.SeekData(out, uint64(offset))
	} else {
		at, err = h.content.SeekHole(out, uint64(offset))
	}
	return int64(at), err
}

// Allocate implements mount.Files.
func (c *Client) Allocate(ctx context.Context, who mount.Caller, id mount.Inode, hid mount.Handle, offset, length int64, mode mount.AllocateMode) error {
	const op fault.Op = "cartwheel.Allocate"
	h, err := c.handles.file(hid)
	if err != nil {
		return err
	}
	if offset < 0 || length <= 0 {
		return fault.E(fault.Invalid, op, "", "")
	}
	if offset > math.MaxInt64-length {
		return fault.E(fault.TooLarge, op, "", "")
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	if who.UID != 0 {
		if err := c.opens.DropSetID(out, h.object, h.writer, &h.asked); err != nil {
			return err
		}
	}
	if mode&mount.AllocatePunchHole == 0 {
		stored := uint64(0)
		if a, _, ok := c.names.Attr(h.object); ok {
			stored = a.Stored
		}
		if err := c.space.Room(out, h.object, stored, uint64(offset+length), uint64(length)); err != nil {
			return err
		}
	}
	if err := h.content.Allocate(out, uint32(mode), uint64(offset), uint64(length)); err != nil {
		return err
	}
	if mode&(mount.AllocatePunchHole|mount.AllocateZeroRange) != 0 {
		c.kernel.Invalidate(id, offset, length)
	}
	return nil
}
