package replicatest

import (
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// config is the simulated geo-config: one row, compare-and-swap, answers that
// get lost, and times when nobody is there.
type config struct {
	w       *World
	row     *geoconfig.SliceRow
	away    Time             // until
	asked   map[swapKey]bool // sent, so that it may be applied yet
	applied map[swapKey]bool
	active  map[ids.Epoch]ids.Node
}

type swapKey struct {
	node          ids.Node
	boot, attempt uint64
	from          ids.Epoch
}

const configIndex = 99

func (c *config) init(w *World, row *geoconfig.SliceRow) {
	*c = config{w: w, row: row, asked: map[swapKey]bool{}, applied: map[swapKey]bool{}, active: map[ids.Epoch]ids.Node{1: row.Active}}
}

// swap carries one compare-and-swap there and its outcome back.
func (c *config) swap(m *machine, s replica.Swap) {
	w := c.w
	done := func(o replica.Outcome, row *geoconfig.SliceRow) func() {
		return func() {
			w.trace("%s: swap from %d had outcome %d", m.id, s.From, o)
			m.core.Swapped(m.clock(), s, o, row)
		}
	}
	key := swapKey{m.id, m.boot, s.Attempt, s.From}
	d, ok := w.pass(m.index, configIndex)
	if w.now < c.away || !ok {
		if w.chance(500) && !c.asked[key] {
			m.later(10*time.Millisecond, done(replica.Void, nil)) // the connection was refused
		} else {
			m.later(Lease/2, done(replica.Unknown, nil))
		}
		return
	}
	if !w.calm && w.chance(60) {
		d += w.between(0, 4*Lease)
	}
	c.asked[key] = true
	boot := m.boot
	w.after(d, func() {
		won := c.apply(key, s)
		row := c.row
		back, ok := w.pass(configIndex, m.index)
		if m.boot != boot {
			return
		}
		switch {
		case !ok || w.now < c.away:
			m.later(Lease/2, done(replica.Unknown, nil))
		case won:
			after := s.After
			m.later(back, done(replica.Won, &after))
		default:
			m.later(back, done(replica.Lost, row))
		}
	})
}

func (c *config) apply(key swapKey, s replica.Swap) bool {
	if c.applied[key] {
		return true
	}
	if s.From != c.row.Epoch {
		return false
	}
	c.applied[key] = true
	row := s.After.Clone()
	c.w.check.swap(c.row, &row)
	c.row = &row
	c.active[row.Epoch] = row.Active
	c.w.trace("geo-config: %s", rowText(&row))
	c.tell()
	return true
}

// greet tells a machine that starts what the row is: late at times, or never.
func (c *config) greet(m *machine) {
	w := c.w
	d, ok := w.pass(configIndex, m.index)
	if !ok || w.now < c.away || !w.calm && w.chance(150) {
		return
	}
	d += w.between(0, Lease)
	if !w.calm && w.chance(300) {
		d += w.between(0, 4*Lease)
	}
	m.later(d, func() { m.core.Learn(m.clock(), c.row) })
}

// tell lets the followers know, some late, some never.
func (c *config) tell() {
	for _, m := range c.w.machines {
		if !c.w.calm && c.w.chance(300) {
			continue
		}
		row := c.row
		d, ok := c.w.pass(configIndex, m.index)
		if ok && slices.ContainsFunc(row.Members, func(x geoconfig.Member) bool { return x.Node == m.id }) {
			m.later(d+c.w.between(0, Lease/2), func() { m.core.Learn(m.clock(), row) })
		}
	}
}
