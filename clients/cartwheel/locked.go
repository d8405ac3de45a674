package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/locks"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// locked is the Client as its locks see it.
type locked struct{ c *Client }

var _ locks.Files = locked{}

// Publish implements locks.Files.
func (f locked) Publish(ctx context.Context, o ids.Object) error { return f.c.deferred.Publish(ctx, o) }

// Flush implements locks.Files.
func (f locked) Flush(ctx context.Context, o ids.Object) error { return f.c.opens.Flush(ctx, o) }

// FlushLate implements locks.Files.
func (f locked) FlushLate(o ids.Object) (late bool, err error) {
	slow, done := f.c.limits.Patiently(f.c.life.ctx)
	defer done()
	err = f.c.engine.FlushObject(slow, o)
	return slow.Err() != nil, err
}

// CatchUp implements locks.Files.
func (f locked) CatchUp(ctx context.Context, o ids.Object) error { return f.c.opens.CatchUp(ctx, o) }

// isDirty reports whether bytes of a file are not committed.
func (c *Client) isDirty(o ids.Object) bool { return c.engine.Overlay(&pb.Attr{Object: uint64(o)}) }

// GetLock implements mount.Locks.
func (c *Client) GetLock(ctx context.Context, _ mount.Caller, id mount.Inode, hid mount.Handle, l mount.Lock) (mount.Lock, error) {
	o, _, ok := c.nodes.Find(id)
	if !ok {
		return mount.Lock{}, staleNode
	}
	ctx, done := timeouts.Within(ctx, c.handles.terms(hid))
	defer done()
	return c.locks.Get(ctx, o, l)
}

// SetLock implements mount.Locks. The wait for whoever has the lock is none for
// nodes: .MaxTime does not bound it.
func (c *Client) SetLock(ctx context.Context, _ mount.Caller, id mount.Inode, hid mount.Handle, l mount.Lock, wait bool) error {
	o, _, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	if !wait {
		bounded, done := timeouts.Within(ctx, c.handles.terms(hid))
		defer done()
		ctx = bounded
	}
	return c.locks.Set(ctx, o, hid, l, wait)
}
