package replicatest

import (
	"fmt"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// client numbers its writes, tries them again until they are answered, and
// caches what it reads while its object lease lasts.
type client struct {
	w       *World
	index   int
	id      uint64 // of its registration
	number  uint64
	hint    int // the machine asked last
	cache   map[string]cached
	revoked map[string]Time // nothing asked for before is cached
	writes  int
	round   int // tells late answers from the current operation's
}

type cached struct {
	value string
	until Time
}

// operation is one call of a client, in the history.
type operation struct {
	client int
	id     uint64
	write  bool
	key    string
	value  string // written or read
	level  uint32
	call   Time
	ret    Time // 0: not answered
	serial uint64
}

func newClient(w *World, i int) *client {
	c := &client{w: w, index: i, id: uint64(i + 1), hint: w.rng.IntN(w.o.Level), cache: map[string]cached{}, revoked: map[string]Time{}}
	w.after(w.between(0, Lease), c.next)
	return c
}

func (c *client) network() int { return 100 + c.index }

// next begins another operation after a while.
func (c *client) next() {
	c.w.after(c.w.between(5*time.Millisecond, Lease/3), func() {
		if c.w.calm {
			return
		}
		key := keyName(c.w.rng.IntN(keys))
		if c.w.chance(500) {
			c.read(key)
			return
		}
		c.writes++
		op := &operation{client: c.index, id: c.id, write: true, key: key, value: fmt.Sprintf("%d.%d", c.index, c.writes), call: c.w.now}
		if c.w.rng.IntN(256) < c.w.o.LevelTwo {
			op.level = 2
		}
		c.w.check.begin(op)
		c.number++
		c.try(op, c.number, func(a answer) {
			op.ret, op.serial = c.w.now, a.serial
			if a.value != op.value {
				c.w.check.fail("client %d got the result %q of another operation for %q", c.index, a.value, op.value)
			}
			c.next()
		})
	})
}

// try sends a write until it is answered for good.
func (c *client) try(op *operation, number uint64, done func(answer)) {
	c.round++
	round := c.round
	var send func()
	send = func() {
		if c.round != round {
			return
		}
		m := c.w.machines[c.hint]
		d, ok := c.w.pass(c.network(), m.index)
		if ok {
			m.later(d, func() {
				m.write(op, number, number, func(a answer) {
					back, ok := c.w.pass(m.index, c.network())
					if !ok {
						return
					}
					c.w.after(back, func() {
						if c.round != round {
							return
						}
						switch a.kind {
						case fault.None:
							c.round++
							done(a)
						case fault.Expired, fault.Invalid, fault.TooLarge:
							c.w.check.fail("client %d: write %d refused: %v", c.index, number, a.kind)
						}
					})
				})
			})
		}
		c.w.after(c.w.between(Lease/4, Lease/2), func() {
			c.hint = c.w.rng.IntN(len(c.w.machines))
			send()
		})
	}
	send()
}

// read asks the cache, then a few machines.
func (c *client) read(key string) {
	op := &operation{client: c.index, key: key, call: c.w.now}
	if v, ok := c.cache[key]; ok && c.w.now < v.until {
		op.value, op.ret = v.value, c.w.now
		c.w.check.begin(op)
		c.next()
		return
	}
	c.round++
	round := c.round
	var send func(left int)
	send = func(left int) {
		if c.round != round {
			return
		}
		if left == 0 {
			c.next()
			return
		}
		asked := c.w.now
		m := c.w.machines[c.hint]
		if d, ok := c.w.pass(c.network(), m.index); ok {
			m.later(d, func() {
				m.read(c.index, key, func(a answer) {
					back, ok := c.w.pass(m.index, c.network())
					if ok {
						c.w.after(back, func() { c.got(op, round, asked, a) })
					}
				})
			})
		}
		c.w.after(c.w.between(Lease/8, Lease/4), func() {
			if c.round == round {
				c.hint = c.w.rng.IntN(len(c.w.machines))
			}
			send(left - 1)
		})
	}
	send(6)
}

// got ends a read. An object lease counts from when it was asked for.
func (c *client) got(op *operation, round int, asked Time, a answer) {
	if c.round != round || a.kind != fault.None {
		return
	}
	c.round++
	op.value, op.ret = a.value, c.w.now
	c.w.check.begin(op)
	if a.left > 0 && asked > c.revoked[op.key] {
		until := asked + a.left*24/25 // this clock may be slower than the node's
		if c.w.o.Bugs.LeaseOutlivesActive {
			until = asked + 4*Lease
		}
		c.cache[op.key] = cached{a.value, until}
	}
	c.next()
}
