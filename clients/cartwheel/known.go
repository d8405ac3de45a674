package cartwheel

import (
	"time"

	"cartwheel.dev/clients/mount"
)

// The kernel keeps a node for as long as it has memory for it, and this client
// keeps a record of each. Both would grow with every file that was ever looked
// at. So the client keeps at most Options.KnownFiles nodes: beyond that it asks
// the kernel to give up those that were looked up the longest time ago. What is
// in use stays known, however much it is.

const (
	// slack is the part of the limit by which the number of nodes swings: so much
	// below it the kernel is asked to come down to, and so much above it names
	// are listed without their attributes.
	slack = 8
	// forgetToldEvery is how often names are forgotten that the kernel does not
	// believe any more.
	forgetToldEvery = 5 * time.Second
)

// given is a node that the kernel is asked to give up.
type given struct {
	node, dir mount.Inode
	name      string
}

// age makes a node the one that was looked up last; the mutex is held.
func (t *nodes) age(n *node) {
	n.unlink()
	n.prev, n.next = t.oldest.prev, &t.oldest
	n.prev.next, n.next.prev = n, n
}

// unlink takes a node out of the list by age.
func (n *node) unlink() {
	if n.prev != nil {
		n.prev.next, n.next.prev = n.next, n.prev
		n.prev, n.next = nil, nil
	}
}

// crowded reports whether the kernel knows too many nodes to be told of more
// than it asks for.
func (t *nodes) crowded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limit > 0 && len(t.byID) > t.limit+t.limit/slack
}

// excess returns the oldest nodes where there are more than the limit, to be
// given up, and nothing while others are. They become the youngest: what the
// kernel keeps is not asked for again soon.
func (t *nodes) excess() []given {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limit <= 0 || len(t.byID) <= t.limit || t.releasing {
		return nil
	}
	most := len(t.byID) - t.limit + t.limit/slack
	out := make([]given, 0, most)
	for n, left := t.oldest.next, len(t.byID); left > 0 && len(out) < most; left-- {
		next := n.next
		t.age(n)
		if n.opens == 0 && n.id != mount.Root {
			g := given{node: n.id, dir: n.dir}
			if !n.isDir {
				g.name = n.name
			}
			out = append(out, g)
		}
		n = next
	}
	t.releasing = len(out) > 0
	return out
}

// release asks the kernel to give up what is too much.
func (c *Client) release() {
	k := c.notifier.Load()
	if k == nil {
		return
	}
	r, ok := (*k).(mount.Releaser)
	if !ok {
		return
	}
	list := c.nodes.excess()
	if len(list) == 0 {
		return
	}
	for _, g := range list {
		r.Release(g.node, g.dir, g.name)
	}
	(*k).Drained(func() {
		c.nodes.mu.Lock()
		defer c.nodes.mu.Unlock()
		c.nodes.releasing = false
	})
}

// Known is how many nodes the kernel knows, and how many names it may believe.
func (c *Client) Known() (nodes, names int) {
	t := &c.nodes
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID), t.names
}

// forgetTold forgets the names that the kernel does not believe any more, unless
// it did so a moment ago or there are none.
func (t *nodes) forgetTold(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == 0 || now-t.swept < forgetToldEvery {
		return
	}
	t.swept = now
	for _, n := range t.byID {
		t.tidy(n, now)
	}
}

// tidy forgets the names of a directory that the kernel does not believe any
// more; the mutex is held.
func (t *nodes) tidy(n *node, now time.Duration) {
	for name, x := range n.told {
		if x.until <= now {
			delete(n.told, name)
			t.names--
		}
	}
	if len(n.told) == 0 {
		n.told = nil
	}
}

// suspended reports whether the machine slept since it was asked last: the clock
// of leases went on, the one that kernels count their timeouts by did not.
func (t *nodes) suspended(boot time.Duration, awake time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.start.IsZero()
	if first {
		t.start = awake
	}
	asleep := boot - awake.Sub(t.start)
	was := t.asleep
	t.asleep = asleep
	return !first && asleep-was > slept
}

// slept is by how much the clock of leases must have run ahead between two looks:
// more than the clocks drift apart.
const slept = 100 * time.Millisecond

// woken has the kernel drop everything: it counts on with timeouts whose leases
// ended while the machine slept.
func (c *Client) woken() {
	c.opt.Logger.Info("the machine was suspended: what the kernel knows is looked at anew")
	c.dropKernel(func(n *node) bool {
		for name, x := range n.told {
			x.until = 1<<63 - 1 // by the clock of leases they are over
			n.told[name] = x
		}
		return true
	})
}

// watch looks after what the kernel knows, until the Client ends.
func (c *Client) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	c.nodes.suspended(c.boot(), c.opt.Now())
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
			if c.nodes.suspended(c.boot(), c.opt.Now()) {
				c.woken()
			}
			c.release()
			c.nodes.forgetTold(c.boot())
			c.endLingering()
		}
	}
}

// watchEvery is how late the kernel may be told that the machine slept.
const watchEvery = 250 * time.Millisecond
