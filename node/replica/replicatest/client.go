package replicatest

import (
	"fmt"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// client numbers its writes, tries them again until they are answered, and
// caches what it reads while its object lease lasts. It has several operations
// under way at once (Options.Flight).
type client struct {
	*sim
	*cluster
	check  *checker
	cache  *cache
	index  int
	id     uint64 // of its registration
	number uint64
	hint   int // the machine asked last
	writes int
	// outstanding are the numbers of writes that are not answered.
	outstanding map[uint64]bool
}

func newClient(s *sim, all *cluster, check *checker, i int) *client {
	c := &client{sim: s, cluster: all, check: check, cache: all.caches[i], index: i, id: uint64(i + 1), hint: s.rng.IntN(s.o.Level), outstanding: map[uint64]bool{}}
	for range max(1, s.o.Flight) {
		s.after(s.between(0, Lease), c.next)
	}
	return c
}

func (c *client) network() int { return firstClient + c.index }

// next begins another operation after a while.
func (c *client) next() {
	c.after(c.between(5*time.Millisecond, Lease/3), func() {
		if c.calm {
			return
		}
		key := keyName(c.rng.IntN(keys))
		if c.chance(500) {
			c.read(key, 6, func(bool) { c.next() })
			return
		}
		level := uint32(0)
		if c.rng.IntN(256) < c.o.LevelTwo {
			level = 2 + uint32(c.rng.IntN(max(1, c.o.Level-3)))
		}
		c.write(key, level, c.next)
	})
}

// write begins a write and tries it until it is answered.
func (c *client) write(key string, level uint32, done func()) {
	c.writes++
	op := &operation{client: c.index, id: c.id, write: true, key: key, value: fmt.Sprintf("%d.%d", c.index, c.writes), level: level, call: c.now}
	c.check.begin(op)
	c.number++
	number := c.number
	op.number = number
	c.outstanding[number] = true
	c.try(op, number, func(a answer) {
		delete(c.outstanding, number)
		op.ret, op.serial = c.now, a.serial
		if a.value != op.value {
			c.check.fail("client %d got the result %q of another operation for %q", c.index, a.value, op.value)
		}
		done()
	})
}

// lowest returns the lowest number outstanding.
func (c *client) lowest() uint64 {
	low := c.number
	for n := range c.outstanding {
		low = min(low, n)
	}
	return low
}

// try sends a write until it is answered for good.
func (c *client) try(op *operation, number uint64, done func(answer)) {
	settled := false
	var send func()
	got := func(a answer) {
		switch {
		case settled:
		case a.kind == fault.None:
			settled = true
			done(a)
		case a.kind == fault.Expired || a.kind == fault.Invalid || a.kind == fault.TooLarge:
			c.check.fail("client %d: write %d refused: %v", c.index, number, a.kind)
		}
	}
	send = func() {
		if settled {
			return
		}
		m, low := c.machines[c.hint], c.lowest()
		if d, ok := c.pass(c.network(), m.index); ok {
			m.later(d, func() {
				m.write(op, number, low, func(a answer) {
					if back, ok := c.pass(m.index, c.network()); ok {
						c.after(back, func() { got(a) })
					}
				})
			})
		}
		c.after(c.between(Lease/4, Lease/2), func() {
			if !settled {
				c.hint = c.rng.IntN(len(c.machines))
			}
			send()
		})
	}
	send()
}

// read asks the cache, then a few machines; done hears whether one answered.
func (c *client) read(key string, tries int, done func(bool)) {
	op := &operation{client: c.index, key: key, call: c.now}
	if value, ok := c.cache.get(key, c.now); ok {
		op.value, op.ret = value, c.now
		c.check.begin(op)
		done(true)
		return
	}
	settled := false
	var send func(left int)
	send = func(left int) {
		if settled {
			return
		}
		if left == 0 {
			settled = true
			done(false)
			return
		}
		asked := c.now
		m := c.machines[c.hint]
		if d, ok := c.pass(c.network(), m.index); ok {
			m.later(d, func() {
				m.read(c.index, key, func(a answer) {
					back, ok := c.pass(m.index, c.network())
					if !ok {
						return
					}
					c.after(back, func() {
						if !settled && a.kind == fault.None {
							settled = true
							c.got(op, asked, a)
							done(true)
						}
					})
				})
			})
		}
		c.after(c.between(Lease/8, Lease/4), func() {
			if !settled {
				c.hint = c.rng.IntN(len(c.machines))
			}
			send(left - 1)
		})
	}
	send(tries)
}

// got takes what was read. An object lease counts from when it was asked for.
func (c *client) got(op *operation, asked Time, a answer) {
	op.value, op.ret = a.value, c.now
	c.check.begin(op)
	if a.left > 0 {
		until := asked + a.left*24/25 // this clock may be slower than the node's
		if c.o.Bugs.LeaseOutlivesActive {
			until = asked + 4*Lease
		}
		c.cache.keep(op.key, a.value, asked, until)
	}
}
