package cartwheel

import (
	"context"
	"math"

	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

var _ mount.PieceReader = (*Client)(nil)

// Open implements mount.Files.
func (c *Client) Open(ctx context.Context, who mount.Caller, id mount.Inode, flags mount.OpenFlags) (mount.Opened, error) {
	const op fault.Op = "cartwheel.Open"
	o, _, ok := c.nodes.Find(id)
	if !ok {
		return mount.Opened{}, staleNode
	}
	if !c.nodes.MayOpen(id, who.PID) {
		return mount.Opened{}, fault.E(fault.Stale, op, o.String(), "the name may mean something else by now")
	}
	cues := c.nodes.HintedCues(o, who.PID, c.opt.Clock())
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	out, cancel := c.limits.Remotely(ctx)
	b, err := c.nodes.BeginOpen(out, o, flags)
	cancel()
	if err != nil {
		return mount.Opened{}, err
	}
	hold := c.engine.Hold(o)
	defer hold.Release()
	var a *pb.Attr
	later := emptiesLater(ctx, flags)
	if flags&mount.OpenTruncate != 0 {
		if c.nodes.AwaitFill(id); !later {
			a, err = c.opens.Truncate(ctx, who, o, cues)
		}
	}
	if err == nil {
		a, err = c.opens.Attr(ctx, o, hold)
	}
	if hold.Outdated(a) {
		b.Fresh = false // the kernel gets none of it
	}
	if err == nil && a.Mode&mount.TypeMask == mount.TypeDir {
		err = fault.E(fault.IsDirectory, op, o.String(), "")
	}
	if err == nil {
		err = mayWrite(a, flags)
	}
	if err != nil {
		if l, isLast := c.holds.EndOpen(o, flags); isLast {
			c.holds.Release(l)
		}
		return mount.Opened{}, err
	}
	opened := c.opened(ctx, who, b, a, flags, cues)
	if later {
		err = empty(ctx, c, id, opened.Handle, a)
	}
	return opened, err
}

// opened makes a handle of a file whose current attributes are known.
func (c *Client) opened(ctx context.Context, who mount.Caller, b inodes.Opening, a *pb.Attr, flags mount.OpenFlags, cues cue.Set) mount.Opened {
	h := &handle{object: b.Object, node: inodes.Plain(b.Object), flags: flags, terms: cues.Terms(), seals: flags.Writes() && a.Cues.GetWriteOnce(),
		lazy: cues.Only(cue.Write).Lazy() && flags&(mount.OpenSync|mount.OpenDirect) == 0}
	h.content, h.writer = c.opens.Handle(who, &b, a, flags, cues)
	if a.Size > 0 && flags.Reads() && cues.Only(cue.Read).Has(cue.WholeFile) {
		h.content.FetchWhole()
	}
	out := c.opens.Finish(ctx, &b, h.content, a, flags)
	out.Handle = c.handles.add(h)
	return out
}

// Read implements mount.Files.
func (c *Client) Read(ctx context.Context, _ mount.Caller, _ mount.Inode, id mount.Handle, offset int64, buf []byte) (int, error) {
	h, err := c.toRead(id, offset)
	if err != nil {
		return 0, err
	}
	ctx, done := timeouts.Within(ctx, h.terms)
	defer done()
	out, cancel := c.limits.WhileComing(ctx, comingFor(c, h.object))
	defer cancel()
	return h.content.ReadAt(out, buf, uint64(offset))
}

// ReadPieces implements mount.PieceReader.
func (c *Client) ReadPieces(ctx context.Context, _ mount.Caller, _ mount.Inode, id mount.Handle, offset int64, buf []byte) ([][]byte, int, error) {
	h, err := c.toRead(id, offset)
	if err != nil {
		return nil, 0, err
	}
	ctx, done := timeouts.Within(ctx, h.terms)
	defer done()
	out, cancel := c.limits.WhileComing(ctx, comingFor(c, h.object))
	defer cancel()
	return h.content.ReadPieces(out, buf, uint64(offset))
}

// comingFor counts what comes from the nodes that an object may be read from: the
// members of its slice, and those at this client's site, which share what they have.
func comingFor(c *Client, o ids.Object) func() uint64 {
	return func() (sum uint64) {
		row, _ := c.router.Known(o.Slice())
		for _, n := range c.cluster.Nodes() {
			if _, member := row.Member(n.ID); member || n.Site == c.cluster.Site() {
				sum += wire.Came(c.cluster.Host(), string(n.ID), wire.Chunk)
			}
		}
		return sum
	}
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
	terms := h.terms
	if flags&mount.WriteBack != 0 {
		terms = cue.Terms{} // no program waits for these pages, and nobody else has them
	}
	ctx, done := timeouts.Within(ctx, terms)
	defer done()
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
	out, done := timeouts.Within(ctx, h.terms)
	defer done()
	if told := c.deferred.Of(h.object) == nil; h.lazy && !told {
		err = c.saved(out, h)
	} else if h.flags.Writes() && !c.holds.IsRemoved(h.object) || !told {
		err = c.flushed(out, h, h.content.Flush)
	}
	c.locks.UnlockOwner(out, h.object, owner)
	return err
}

// saved returns when a new file that nobody else can see is in the write journal, if
// there is one. Its node hears of it in the background, behind what was done before
// and ahead of what is done from now on; a large file only once its content is there.
func (c *Client) saved(ctx context.Context, h *handle) error {
	err := h.content.Save()
	f := c.deferred.Of(h.object)
	switch {
	case f == nil || err != nil:
		return err
	case h.content.Small():
		c.engine.Send(h.object)
	case h.content.Dirty() || !c.life.spawn(func() { _ = c.deferred.PublishFile(c.life.ctx, f) }): // what is refused is logged
		return nil
	}
	f.Ordered(ctx)
	return nil
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
	if behind := c.alone.FlushSlice(out, h.object.Slice()); err == nil { // what was done before is there, too
		err = behind
	}
	if refused := c.deferred.Refusal(h.object); err == nil {
		err = refused
	}
	if moved := c.handles.keeper.Settle(out, h.object, h.writer); err == nil {
		err = moved
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
	if h.seals && !c.handles.isWritten(h.object) {
		h.sealed(c)
	}
	if l, isLast := c.holds.EndOpen(h.object, h.flags); isLast {
		c.handles.owed.Drop(h.object)
		h.content.Forsake()
		c.holds.Release(l)
		return
	}
	c.handles.keeper.SettleLater(h.object, h.writer)
	h.content.Close()
}

// Fsync implements mount.Files.
func (c *Client) Fsync(ctx context.Context, _ mount.Caller, _ mount.Inode, id mount.Handle, _ bool) error {
	h, err := c.handles.file(id)
	if err != nil {
		return err
	}
	ctx, done := timeouts.Within(ctx, h.terms)
	defer done()
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
	ctx, done := timeouts.Within(ctx, h.terms)
	defer done()
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
	ctx, done := timeouts.Within(ctx, h.terms)
	defer done()
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
