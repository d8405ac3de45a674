package cartwheel

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
)

// tellLimit is how long a revocation's answer waits for the kernel to be told.
// A kernel that is held up by an operation which in turn waits for another
// client must not hold that client up; until it is told, opens answer ESTALE.
const tellLimit = 100 * time.Millisecond

// notice is what a kernel is to be told.
type notice struct {
	inodes []mount.Inode // attributes and pages
	attrs  []mount.Inode // attributes only
	names  []nameNotice
	nodes  []*node // untold until then
	number uint64
	dirs   []ids.Object // whose names are given up
}

type nameNotice struct {
	dir  mount.Inode
	name string
}

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
	var n notice
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
		if item.What == pb.Grant_NAMES {
			n.dirs = append(n.dirs, o)
		}
		held = append(held, c.nodes.revoke(o, item, c.boot(), &n, c.isOwn)...)
		if item.What == pb.Grant_FILE || item.Unlinked {
			if engine := c.engine; engine != nil {
				engine.Invalidate(o)
			}
		}
	}
	if len(n.dirs) > 0 && c.engine != nil {
		c.uncovered(&n)
	}
	answer := func() { done(held) }
	in := func(f *pending.File) bool { return slices.Contains(shared, f.Dir) }
	if len(shared) > 0 && c.alone.table.Len() > 0 {
		if waits { // both must have happened
			var first atomic.Bool
			answer = func() {
				if !first.CompareAndSwap(false, true) {
					done(held)
				}
			}
			c.tellSoon(in, answer)
		} else {
			c.tellSoon(in, func() {})
		}
	}
	c.tellKernel(&n, busy, answer)
}

// uncovered adds the open files that only a directory's lease covered.
func (c *Client) uncovered(out *notice) {
	t := &c.nodes
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.open {
		if _, _, ok := c.names.Attr(n.object); ok {
			continue
		}
		c.engine.Invalidate(n.object)
		t.untell(n, out)
		out.inodes = append(out.inodes, n.id)
	}
}

// untell notes that the kernel may believe what is no longer so; the mutex is
// held. The caller invalidates the engine's version after it, never before: an
// open that begins in between looks at changed when it has the version.
func (t *nodes) untell(n *node, out *notice) {
	n.untold = t.numbered(n, out)
	n.changed++
}

// misname notes that the kernel may believe a name of a node that means something
// else by now; the mutex is held.
func (t *nodes) misname(n *node, out *notice) { n.misnamed = t.numbered(n, out) }

// numbered adds a node to a notice and returns its number.
func (t *nodes) numbered(n *node, out *notice) uint64 {
	if out.number == 0 {
		t.notices++
		out.number = t.notices
	}
	out.nodes = append(out.nodes, n)
	return out.number
}

// revoke gathers what the kernel must hear, and returns the objects that must
// not go although they lose their last name: those that are open here, and those
// that may be open in a moment. own reports whether an object's attributes are
// covered by a lease on itself.
func (t *nodes) revoke(o ids.Object, item *pb.RevokeRequest_Item, now time.Duration, out *notice,
	own func(ids.Object) bool) (held []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if item.What == pb.Grant_FILE {
		n := t.known(o)
		if n == nil {
			return nil
		}
		t.untell(n, out)
		out.inodes = append(out.inodes, n.id)
		if n.opens > 0 {
			n.held = n.held || item.Unlinked
			return []uint64{item.Object}
		}
		if item.Unlinked && t.soonOpen(o, now) {
			return []uint64{item.Object}
		}
		return nil
	}
	for _, n := range t.of(o) {
		n.revoked = now
		t.untellNames(n, now, out, own)
	}
	return t.soonOpenIn(o, now)
}

// isOwn reports whether an object's attributes are covered by a lease on itself.
func (c *Client) isOwn(o ids.Object) bool {
	_, ok := c.names.Own(o)
	return ok
}

// untellNames gathers the names that the kernel may still believe, and the files
// whose attributes only the directory's lease covered. The others stay as they
// are: a kernel that is told of a file ignores the attributes that it asked for
// a moment before, and a process that just took a lock would read up to the old
// size.
func (t *nodes) untellNames(n *node, now time.Duration, out *notice, own func(ids.Object) bool) {
	out.attrs = append(out.attrs, n.id)
	for name, x := range n.told {
		if x.until <= now {
			continue
		}
		out.names = append(out.names, nameNotice{n.id, name})
		child := t.byID[x.child]
		switch {
		case child == nil:
		case own(child.object):
			t.misname(child, out)
		default:
			t.misname(child, out)
			t.untell(child, out)
			out.attrs = append(out.attrs, child.id)
		}
	}
	t.names -= len(n.told)
	n.told = nil
}

// no says of every object that nothing covers it.
func no(ids.Object) bool { return false }

// untell gathers everything that the kernel may believe of an object.
func (c *Client) untell(o ids.Object) *notice {
	t, now := &c.nodes, c.boot()
	var out notice
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.of(o) {
		t.untell(n, &out)
		out.inodes = append(out.inodes, n.id)
		t.untellNames(n, now, &out, no)
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
	w := &waiting{answer: func() { once.Do(answer) }}
	w.late = time.AfterFunc(tellLimit, w.answer)
	c.waits.add(n.dirs, w)
	(*k).Drained(func() {
		w.late.Stop()
		c.waits.remove(n.dirs, w)
		told()
	})
}

// waiting is a revocation's answer that waits for the kernel to be told.
type waiting struct {
	answer func()
	late   *time.Timer
}

// waits knows which directories' revocations wait for the kernel. The kernel
// locks a directory while an operation on its names is under way, so that one
// that begins has them answered at once.
type waits struct {
	mu sync.Mutex // guards by
	by map[ids.Object][]*waiting
}

func (t *waits) add(dirs []ids.Object, w *waiting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range dirs {
		t.by[o] = append(t.by[o], w)
	}
}

func (t *waits) remove(dirs []ids.Object, w *waiting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range dirs {
		list := t.by[o]
		if i := slices.Index(list, w); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		if len(list) == 0 {
			delete(t.by, o)
		} else {
			t.by[o] = list
		}
	}
}

// begin notes that an operation on names begins, and has the answers that
// would wait for its end given now.
func (c *Client) begin(dir, to, o ids.Object, changed ...string) names.Mark {
	m := c.names.Begin(dir, to, o, changed...)
	t := &c.waits
	t.mu.Lock()
	var now []*waiting
	now = append(now, t.by[dir]...)
	if to != 0 && to != dir {
		now = append(now, t.by[to]...)
	}
	t.mu.Unlock()
	for _, w := range now {
		w.answer()
	}
	return m
}

// tolds notes that the kernel has been told.
func (t *nodes) tolds(n *notice) {
	if len(n.nodes) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range n.nodes {
		if x.untold == n.number {
			x.untold = 0
		}
		if x.misnamed == n.number {
			x.misnamed = 0
		}
	}
}

// lapsed hears that a session ended: whatever it covered and is open is looked
// at anew, and the locks that went with it are lost, unless another node acts
// for their slice by now: that one had them claimed.
func (c *Client) lapsed(node ids.Node) {
	c.locks.Doubt(node)
	c.tellSoon(func(f *pending.File) bool {
		row, ok := c.router.Known(f.Dir.Slice())
		return !ok || row.Active == node
	}, func() {})
	c.spawn(func() {
		c.again(func(ids.Object) bool { return true })
	})
}

// again makes open files whose lease is gone ask for their version.
func (c *Client) again(which func(ids.Object) bool) {
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
	out := c.nodes.forgetAll(which, c.boot())
	for _, n := range out.nodes {
		c.engine.Invalidate(n.object)
	}
	c.tellKernel(&out, false, nil)
}

func (t *nodes) forgetAll(which func(*node) bool, now time.Duration) (out notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.byID {
		if which(n) {
			t.untell(n, &out)
			out.inodes = append(out.inodes, n.id)
			t.untellNames(n, now, &out, no)
		}
	}
	return out
}

// onRow hears of every newer slice row. A new active has none of the leases of
// the old one.
func (c *Client) onRow(old, row geoconfig.SliceRow) {
	if old.ID == 0 || old.Active == row.Active {
		return
	}
	c.sessions.Void(row.ID)
	c.tellSoon(func(f *pending.File) bool { return f.Dir.Slice() == row.ID }, func() {})
	c.spawn(func() {
		c.again(func(o ids.Object) bool { return o.Slice() == row.ID })
		c.locks.Claim(row, func() []uint64 { return c.openIn(row.ID) })
	})
}
