package cartwheel

import (
	"slices"
	"sync/atomic"

	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
)

// revoke gives leases up: it runs on the goroutine that reads the connection
// and must not block. It answers when the kernel knows, or at once where an
// operation of our own on the directory is in flight, whose lock in the kernel
// the news would wait for.
func (c *Client) revoke(_ ids.Node, items []*pb.RevokeRequest_Item, done func(held []uint64)) {
	if plant.On(plant.ClientKeepsRevoked) {
		done(nil)
		return
	}
	busy := false
	var held []uint64
	var n inodes.Notice
	var shared []ids.Object // directories that are ours alone no more
	waits := false
	for _, item := range items {
		o := ids.Object(item.Object)
		if c.names.Revoke(o, item.What) {
			busy = true
		}
		if item.What == pb.Grant_NAMES || item.What == pb.Grant_ALONE {
			waits = waits || !item.Leaving
			shared = append(shared, o)
		}
		if item.What == pb.Grant_ALONE {
			continue
		}
		held = append(held, c.nodes.Revoke(o, item, c.opt.BootTime(), &n, c.isOwn)...)
		if item.What == pb.Grant_FILE || item.Unlinked {
			if engine := c.engine; engine != nil {
				engine.Invalidate(o)
			}
		}
	}
	if n.HasNames() && c.engine != nil { // open files that only the directory's lease covered
		for _, o := range c.nodes.Uncovered(&n, c.isCovered) {
			c.engine.Invalidate(o)
		}
	}
	answer := func() { done(held) }
	in := func(f *pending.File) bool { return slices.Contains(shared, f.Dir) }
	if len(shared) > 0 && c.deferred.Len() > 0 {
		if waits { // both must have happened
			var first atomic.Bool
			answer = func() {
				if !first.CompareAndSwap(false, true) {
					done(held)
				}
			}
			c.deferred.PublishSoon(in, answer)
		} else {
			c.deferred.PublishSoon(in, func() {})
		}
	}
	c.kernel.Tell(&n, busy, answer)
}

// isCovered reports whether an object's attributes are covered by a lease.
func (c *Client) isCovered(o ids.Object) bool {
	_, _, ok := c.names.Attr(o)
	return ok
}

// isOwn reports whether an object's attributes are covered by a lease on itself.
func (c *Client) isOwn(o ids.Object) bool {
	_, ok := c.names.Own(o)
	return ok
}

// begin notes that an operation on names begins, and has the answers that
// would wait for its end given now.
func (c *Client) begin(dir, to, o ids.Object, changed ...string) names.Mark {
	m := c.names.Begin(dir, to, o, changed...)
	c.kernel.Begin(dir, to)
	return m
}

// lapsed hears that a session ended: whatever it covered and is open is looked
// at anew, and the locks that went with it are lost, unless another node acts
// for their slice by now: that one had them claimed.
func (c *Client) lapsed(node ids.Node) {
	c.locks.Doubt(node)
	c.deferred.PublishSoon(func(f *pending.File) bool {
		row, ok := c.router.Known(f.Dir.Slice())
		return !ok || row.Active == node
	}, func() {})
	c.life.spawn(func() {
		c.again(func(ids.Object) bool { return true })
	})
}

// again makes open files whose lease is gone ask for their version.
func (c *Client) again(which func(ids.Object) bool) {
	if c.engine == nil {
		return
	}
	n := c.nodes.ForgetOpen(c.opt.BootTime(), func(o ids.Object) bool { return which(o) && !c.isCovered(o) })
	c.dropKernel(&n)
}

// dropKernel makes the kernel forget what a notice says, and the engine the
// versions of its objects.
func (c *Client) dropKernel(n *inodes.Notice) {
	for _, o := range n.Objects() {
		c.engine.Invalidate(o)
	}
	c.kernel.Tell(n, false, nil)
}

// onRow hears of every newer slice row. A new active has none of the leases of
// the old one.
func (c *Client) onRow(old, row geoconfig.SliceRow) {
	if old.ID == 0 || old.Active == row.Active {
		return
	}
	c.sessions.Void(row.ID)
	c.deferred.PublishSoon(func(f *pending.File) bool { return f.Dir.Slice() == row.ID }, func() {})
	c.life.spawn(func() {
		c.again(func(o ids.Object) bool { return o.Slice() == row.ID })
		c.locks.Claim(row, func() []uint64 { return c.openIn(row.ID) })
	})
}
