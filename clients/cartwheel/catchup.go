package cartwheel

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// catchUp has a file read as it is now at its active, in the engine and in the
// kernel: what was written elsewhere before a lock was granted is seen under it.
// A lease on the attributes is not enough. They may have come later than the
// version that is open, and the kernel may not know of the last revocation yet.
func (c *Client) catchUp(ctx context.Context, o ids.Object) error {
	a, _, ok := c.names.Attr(o)
	if !ok {
		var err error
		if a, err = c.fetch(ctx, o, wanted{content: true}); err != nil {
			return err
		}
	}
	c.engine.SetVersion(a)
	// The kernel forgets the size in any case. It ignores a revocation of a file
	// that it does not know yet, because the answer to its first lookup is on its
	// way; that answer may hold an old size.
	n := notice{attrs: []mount.Inode{plain(o)}}
	if c.nodes.pagesAre(o, a) {
		n = notice{inodes: []mount.Inode{plain(o)}}
	}
	done := make(chan struct{})
	c.tellInFull(&n, func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Interrupted, "cartwheel.catchUp", o.String(), ctx.Err())
	}
}

// pagesAre notes that the kernel's pages of a file are of a version, and reports
// whether older ones must be dropped for that.
func (t *nodes) pagesAre(o ids.Object, a *pb.Attr) (drop bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.known(o)
	if n == nil {
		return false
	}
	drop = n.pages != a.Version || n.untold != 0
	n.pages = a.Version
	return drop
}

// tellInFull queues a notice about files; then runs when the kernel has been
// told, however long that takes.
func (c *Client) tellInFull(n *notice, then func()) {
	k := c.notifier.Load()
	if k == nil {
		then()
		return
	}
	for _, id := range n.inodes {
		(*k).InvalidateInode(id, 0, 0)
	}
	for _, id := range n.attrs {
		(*k).InvalidateInode(id, -1, 0)
	}
	(*k).Drained(then)
}
