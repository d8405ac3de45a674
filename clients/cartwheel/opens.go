package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

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
	cues := c.nodes.HintedCues(o, who.PID, c.opt.BootTime())
	out, cancel := c.limits.Remotely(ctx)
	b, err := c.nodes.BeginOpen(out, o, flags)
	cancel()
	if err != nil {
		return mount.Opened{}, err
	}
	hold := c.engine.Hold(o)
	defer hold.Release()
	var a *pb.Attr
	if flags&mount.OpenTruncate != 0 {
		c.nodes.AwaitFill(id)
		a, err = c.opens.Truncate(ctx, who, o, cues)
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
	if err != nil {
		if l, isLast := c.holds.EndOpen(o, flags); isLast {
			c.holds.Release(l)
		}
		return mount.Opened{}, err
	}
	return c.opened(ctx, who, b, a, flags, cues), nil
}

// opened makes a handle of a file whose current attributes are known.
func (c *Client) opened(ctx context.Context, who mount.Caller, b inodes.Opening, a *pb.Attr, flags mount.OpenFlags, cues cue.Set) mount.Opened {
	h := &handle{object: b.Object, node: inodes.Plain(b.Object), flags: flags}
	h.content, h.writer = c.opens.Handle(who, &b, a, flags, cues)
	out := c.opens.Finish(ctx, &b, h.content, a, flags)
	out.Handle = c.handles.add(h)
	return out
}
