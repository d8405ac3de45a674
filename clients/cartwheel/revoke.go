package cartwheel

import (
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/wire/pb"
)

// tellLimit is how long a revocation's answer waits for the kernel to be told.
// A kernel that is held up by an operation which in turn waits for another
// client must not hold that client up; until it is told, opens answer ESTALE.
const tellLimit = 100 * time.Millisecond

// notice is what a kernel is to be told.
type notice struct {
	inodes []mount.NodeID // attributes and pages
	attrs  []mount.NodeID // attributes only
	names  []nameNotice
	nodes  []*node // untold until then
}

type nameNotice struct {
	dir  mount.NodeID
	name string
}

// revoke gives leases up: it runs on the goroutine that reads the connection
// and must not block. It answers when the kernel knows, or at once where an
// operation of our own on the directory is in flight, whose lock in the kernel
// the news would wait for.
func (c *Client) revoke(_ geoconfig.NodeID, items []*pb.RevokeRequest_Item, done func(held []uint64)) {
	busy := false
	var held []uint64
	var n notice
	for _, item := range items {
		o := geoconfig.ObjectID(item.Object)
		if c.names.Revoke(o, item.What) {
			busy = true
		}
		if item.What == pb.Grant_FILE || item.Unlinked {
			if engine := c.engine; engine != nil {
				engine.Invalidate(o)
			}
		}
		if c.nodes.revoke(o, item, c.boot(), &n) {
			held = append(held, item.Object)
		}
	}
	c.tellKernel(&n, busy, func() { done(held) })
}

// revoke gathers what the kernel must hear, and reports whether the object is
// open here and loses its last name.
func (t *nodes) revoke(o geoconfig.ObjectID, item *pb.RevokeRequest_Item, now time.Duration, out *notice) (held bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if item.What == pb.Grant_FILE {
		n := t.known(o)
		if n == nil {
			return false
		}
		n.untold++
		out.nodes, out.inodes = append(out.nodes, n), append(out.inodes, n.id)
		if item.Unlinked && n.opens > 0 {
			n.held = true
			return true
		}
		return n.opens > 0
	}
	for _, n := range t.of(o) {
		t.untellNames(n, now, out)
	}
	return false
}

// untellNames gathers the names that the kernel may still believe.
func (t *nodes) untellNames(n *node, now time.Duration, out *notice) {
	out.attrs = append(out.attrs, n.id)
	for name, x := range n.told {
		if x.until <= now {
			continue
		}
		out.names = append(out.names, nameNotice{n.id, name})
		if child := t.byID[x.child]; child != nil {
			child.untold++
			out.nodes, out.attrs = append(out.nodes, child), append(out.attrs, child.id)
		}
	}
	n.told = nil
}

// untell gathers everything that the kernel may believe of an object.
func (c *Client) untell(o geoconfig.ObjectID) *notice {
	t, now := &c.nodes, c.boot()
	var out notice
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.of(o) {
		n.untold++
		out.nodes, out.inodes = append(out.nodes, n), append(out.inodes, n.id)
		t.untellNames(n, now, &out)
	}
	return &out
}

// tellKernel queues a notice. then runs when the kernel has been told, or
// after tellLimit, or at once.
func (c *Client) tellKernel(n *notice, atOnce bool, then func()) {
	answer := then
	if then == nil {
		answer = func() {}
	}
	var once sync.Once
	told := func() {
		c.nodes.tolds(n)
		once.Do(answer)
	}
	k := c.notifier.Load()
	if k == nil || len(n.inodes)+len(n.attrs)+len(n.names) == 0 {
		told()
		return
	}
	for _, x := range n.names {
		(*k).InvalidateEntry(x.dir, x.name)
	}
	for _, id := range n.inodes {
		(*k).InvalidateInode(id, 0, 0)
	}
	for _, id := range n.attrs {
		(*k).InvalidateInode(id, -1, 0)
	}
	if atOnce {
		once.Do(answer)
		(*k).Drained(told)
		return
	}
	late := time.AfterFunc(tellLimit, func() { once.Do(answer) })
	(*k).Drained(func() { late.Stop(); told() })
}

// tolds notes that the kernel has been told.
func (t *nodes) tolds(n *notice) {
	if len(n.nodes) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range n.nodes {
		x.untold--
		t.settle(x)
	}
}

// lapsed hears that a session ended: whatever it covered and is open is looked
// at anew.
func (c *Client) lapsed(geoconfig.NodeID) { c.again(func(geoconfig.ObjectID) bool { return true }) }

// again makes open files whose lease is gone ask for their version.
func (c *Client) again(which func(geoconfig.ObjectID) bool) {
	if c.engine == nil {
		return
	}
	c.dropKernel(func(n *node) bool {
		if n.opens == 0 || !which(n.object) {
			return false
		}
		_, _, ok := c.names.Attr(n.object)
		return !ok
	})
}

// dropKernel makes the kernel forget the nodes chosen, and the engine their
// versions.
func (c *Client) dropKernel(which func(*node) bool) {
	t, now := &c.nodes, c.boot()
	var out notice
	t.mu.Lock()
	for _, n := range t.byID {
		if which(n) {
			n.untold++
			out.nodes, out.inodes = append(out.nodes, n), append(out.inodes, n.id)
			t.untellNames(n, now, &out)
		}
	}
	t.mu.Unlock()
	for _, n := range out.nodes {
		c.engine.Invalidate(n.object)
	}
	c.tellKernel(&out, false, nil)
}

// onRow hears of every newer slice row. A new active has none of the leases of
// the old one.
func (c *Client) onRow(old, row geoconfig.SliceRow) {
	if old.ID == 0 || old.Active == row.Active {
		return
	}
	c.sessions.Void(row.ID)
	c.work.Add(1)
	go func() {
		defer c.work.Done()
		c.again(func(o geoconfig.ObjectID) bool { return o.Slice() == row.ID })
		c.claim(row)
	}()
}
