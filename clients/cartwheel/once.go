package cartwheel

import (
	"context"
	"log/slog"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/creation"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
)

// mayWrite refuses to open a sealed file for writing.
func mayWrite(a *pb.Attr, flags mount.OpenFlags) error {
	if a.Sealed && flags.Writes() {
		return fault.E(fault.NotOwner, "cartwheel.Open", "", "the file is write-once and was written: remove it and make another")
	}
	return nil
}

// sealed ends the writing of a write-once file, behind its last handle that could
// write. Kernels wait for no release. Without an answer the file stays open to changes.
func (h *handle) sealed(c *Client) {
	if c.holds.IsRemoved(h.object) {
		return
	}
	ctx, done := timeouts.Within(c.life.ctx, h.terms)
	defer done()
	if err := h.seal(ctx, c); err != nil && !fault.Is(err, fault.Stale) { // else it was removed meanwhile
		c.opt.Logger.Warn("a write-once file could not be sealed", slog.String("object", h.object.String()), logattr.Err(err))
	}
}

// seal commits what was written, and then has the file's active seal it.
func (h *handle) seal(ctx context.Context, c *Client) error {
	if err := c.flushed(ctx, h, h.content.Sync); err != nil {
		return err
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	_, err := c.calls.Change(out, h.object, calls.Operation{Principal: h.writer.Principal, Level: h.writer.Level,
		Op: &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(h.object), Seal: true}}}})
	return err
}

// CreateOnce makes a file with all of its content in a write-once directory. When it
// returns, the file is on disk as a create is, and stays as it is; it never shows in
// part. A small one takes one operation. Exists: there is something of that name.
// Invalid: files of the directory can be changed. After another error the file may be
// there, complete.
func (c *Client) CreateOnce(ctx context.Context, who mount.Caller, id mount.Inode, name string, mode uint32, content []byte) error {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	out, cancel := c.limits.Remotely(ctx)
	err := c.alone.FlushSlice(out, dir.Slice()) // what this client did before comes first
	cancel()
	if err != nil {
		return err
	}
	if len(content) <= creation.WholeLimit {
		done, err := c.maker.Whole(ctx, creation.Request{Dir: dir, Cues: cues, Name: name, Who: who, Call: cue.Open,
			Create: &pb.Create{Mode: mode&^mount.TypeMask | mount.TypeRegular}}, content)
		if done || err != nil {
			return err
		}
	}
	return createLarge(ctx, c, who, id, name, mode, content)
}

// createLarge is CreateOnce for what does not go in one operation: the file gets its
// name when it is sealed.
func createLarge(ctx context.Context, c *Client, who mount.Caller, dir mount.Inode, name string, mode uint32, content []byte) error {
	if err := creation.CheckName(name); err != nil {
		return err
	}
	e, o, err := c.CreateNameless(ctx, who, dir, mode, mount.OpenWrite)
	if err != nil {
		return err
	}
	defer c.Forget(e.Node, 1)
	defer c.Release(e.Node, o.Handle, 0, false)
	h, err := c.handles.file(o.Handle)
	if err != nil {
		return err
	}
	for at := 0; at < len(content) && err == nil; {
		var n int
		n, err = c.Write(ctx, who, e.Node, o.Handle, int64(at), content[at:], 0)
		at += n
	}
	if err == nil {
		err = h.seal(ctx, c)
	}
	if err != nil {
		return err
	}
	h.seals = false // its release need not
	linked, err := c.Link(ctx, who, e.Node, dir, name)
	if err == nil {
		c.Forget(linked.Node, 1)
	}
	return err
}
