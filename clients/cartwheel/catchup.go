package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// catchUp has a file read as it is now at its active, in the engine and in the
// kernel: what was written elsewhere before a lock was granted is seen under it.
// A lease on the attributes is not enough. They may have come later than the
// version that is open, and the kernel may not know of the last revocation yet.
func (c *Client) catchUp(ctx context.Context, o ids.Object) error {
	a, _, ok := c.names.Attr(o)
	if !ok {
		var err error
		if a, err = c.calls.Fetch(ctx, o, calls.Wanted{Content: true}); err != nil {
			return err
		}
	}
	c.engine.SetVersion(a)
	// The kernel forgets the size in any case. It ignores a revocation of a file
	// that it does not know yet, because the answer to its first lookup is on its
	// way; that answer may hold an old size.
	done := make(chan struct{})
	c.kernel.TellInFull(inodes.Plain(o), c.nodes.SetPages(o, a.Version), func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Interrupted, "cartwheel.catchUp", o.String(), ctx.Err())
	}
}
