package cartwheel

import (
	"context"
	"slices"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/cartwheel/xattrs"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// GetXattr implements mount.Xattrs.
func (c *Client) GetXattr(ctx context.Context, who mount.Caller, id mount.Inode, name string, buf []byte) (int, error) {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return 0, staleNode
	}
	cues = c.nodes.CuesOf(o, cues, who.PID, c.opt.Clock())
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	if !xattrs.IsOwn(name) {
		var value []byte
		last, err := c.remembered.Over(o).Of(cues.Terms()).Take(ctx, func(ctx context.Context) (err error) {
			value, err = c.xattrs.Get(ctx, o, name)
			return err
		})
		if last != nil {
			value, err = xattrs.Known(last, name)
		}
		return xattrs.CopyOut(buf, value, err)
	}
	value, err := c.xattrs.Own(ctx, o, name, cues)
	return xattrs.CopyOut(buf, value, err)
}

// ListXattr implements mount.Xattrs.
func (c *Client) ListXattr(ctx context.Context, who mount.Caller, id mount.Inode, buf []byte) (int, error) {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return 0, staleNode
	}
	terms := c.nodes.CuesOf(o, cues, who.PID, c.opt.Clock()).Terms()
	ctx, done := timeouts.Within(ctx, terms)
	defer done()
	var list []byte
	last, err := c.remembered.Over(o).Of(terms).Take(ctx, func(ctx context.Context) (err error) {
		list, err = c.xattrs.List(ctx, o)
		return err
	})
	if last != nil {
		list, err = xattrs.ListKnown(last)
	}
	return xattrs.CopyOut(buf, list, err)
}

// SetXattr implements mount.Xattrs.
func (c *Client) SetXattr(ctx context.Context, who mount.Caller, id mount.Inode, name string, value []byte, flags mount.XattrFlags) error {
	if name == xattrs.DropCaches {
		if !mayDropCaches(who) {
			return fault.E(fault.Permission, "cartwheel.SetXattr", name, "only root and the mount's own user may drop its caches")
		}
		c.DropCaches(ctx)
		return nil
	}
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	cues = c.nodes.CuesOf(o, cues, who.PID, c.opt.Clock())
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	return c.xattrs.Set(ctx, who, o, cues, &pb.SetXattr{Name: name, Value: slices.Clone(value),
		Create: flags&mount.XattrCreate != 0, Replace: flags&mount.XattrReplace != 0})
}

// RemoveXattr implements mount.Xattrs.
func (c *Client) RemoveXattr(ctx context.Context, who mount.Caller, id mount.Inode, name string) error {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	cues = c.nodes.CuesOf(o, cues, who.PID, c.opt.Clock())
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	return c.xattrs.Set(ctx, who, o, cues, &pb.SetXattr{Name: name, Remove: true})
}
