package replicatest

import (
	"fmt"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// config is the simulated geo-config: one row, compare-and-swap, answers that
// get lost, and times when nobody is there.
type config struct {
	*sim
	check     *checker
	followers []follower
	row       *geoconfig.SliceRow
	away      Time             // until
	asked     map[swapKey]bool // sent, so that it may be applied yet
	applied   map[swapKey]bool
	active    map[ids.Epoch]ids.Node
}

type swapKey struct {
	node          ids.Node
	boot, attempt uint64
	from          ids.Epoch
}

// follower is a machine as geo-config sees it.
type follower interface {
	// name, number and life are its ID, its number in the network, and how often
	// it has started.
	name() ids.Node
	number() int
	life() uint64
	// later runs an input of this life after a while. Inputs call the others.
	later(d Time, input func())
	hear(row *geoconfig.SliceRow)
	swapped(s replica.Swap, o replica.Outcome, row *geoconfig.SliceRow)
}

func newConfig(s *sim, check *checker) *config {
	return &config{sim: s, check: check, asked: map[swapKey]bool{}, applied: map[swapKey]bool{}, active: map[ids.Epoch]ids.Node{}}
}

// begin has the first row. Nobody is there to tell of it at once.
func (c *config) begin(row *geoconfig.SliceRow) {
	c.row, c.active[row.Epoch], c.away = row, row.Active, c.now+1
}

// swap carries one compare-and-swap there and its outcome back.
func (c *config) swap(m follower, s replica.Swap) {
	done := func(o replica.Outcome, row *geoconfig.SliceRow) func() {
		return func() {
			c.trace("%s: swap from %d had outcome %d", m.name(), s.From, o)
			m.swapped(s, o, row)
		}
	}
	key := swapKey{m.name(), m.life(), s.Attempt, s.From}
	d, ok := c.pass(m.number(), configIndex)
	if c.now < c.away || !ok {
		if c.chance(500) && !c.asked[key] {
			m.later(10*time.Millisecond, done(replica.Void, nil)) // the connection was refused
		} else {
			m.later(Lease/2, done(replica.Unknown, nil))
		}
		return
	}
	if !c.calm && c.chance(60) {
		d += c.between(0, 4*Lease)
	}
	c.asked[key] = true
	life := m.life()
	c.after(d, func() {
		won := c.apply(key, s)
		row := c.row
		back, ok := c.pass(configIndex, m.number())
		if m.life() != life {
			return
		}
		switch {
		case !ok || c.now < c.away:
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
	c.check.swap(c.row, &row)
	c.row = &row
	c.active[row.Epoch] = row.Active
	c.trace("geo-config: %s", rowText(&row))
	c.tell()
	return true
}

// greet tells a machine that starts what the row is: late at times, or never.
func (c *config) greet(m follower) {
	d, ok := c.pass(configIndex, m.number())
	if !ok || c.now < c.away || !c.calm && c.chance(150) {
		return
	}
	d += c.between(0, Lease)
	if !c.calm && c.chance(300) {
		d += c.between(0, 4*Lease)
	}
	m.later(d, func() { m.hear(c.row) })
}

// tell lets the followers know, some late, some never.
func (c *config) tell() {
	for _, m := range c.followers {
		if !c.calm && c.chance(300) {
			continue
		}
		row := c.row
		d, ok := c.pass(configIndex, m.number())
		if ok && slices.ContainsFunc(row.Members, func(x geoconfig.Member) bool { return x.Node == m.name() }) {
			m.later(d+c.between(0, Lease/2), func() { m.hear(row) })
		}
	}
}

func rowText(r *geoconfig.SliceRow) string {
	s := fmt.Sprintf("epoch %d active %s hear %d", r.Epoch, r.Active, r.Hear)
	for _, m := range r.Members {
		s += fmt.Sprintf(" %s=%v", m.Node, m.State)
	}
	return s
}
