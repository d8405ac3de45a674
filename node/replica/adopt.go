package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// hasTakeoverQuorum reports whether as many normal members have spoken in this
// activeship as a takeover must hear; from then on they take nothing more from
// an earlier active.
func (g *group) hasTakeoverQuorum() bool {
	if g.row.Hear <= 1 || g.phase != phaseRecover || g.n.c.Bugs.TakeoverHearsOne {
		return true
	}
	k := 1
	for i := range g.members {
		if m := &g.members[i]; m.state == geoconfig.Normal && m.tailHeard && !m.tailVoid {
			k++
		}
	}
	return k >= g.row.Hear
}

// adoptLongest makes this log equal to the highest one heard, and reports whether
// it is. Something acknowledged may not be here: a level below all was used, or
// this node's disk is an old one.
func (g *group) adoptLongest() bool {
	if !g.hasTakeoverQuorum() {
		return false
	}
	var best *member
	serial, epoch := g.log.last, g.log.epochAt(g.log.last)
	for i := range g.members {
		m := &g.members[i]
		if m.peer == nil || m.state != geoconfig.Normal || m.hasOtherDisk() {
			continue // who lost its disk has nothing to tell
		}
		if !m.tailHeard {
			if g.row.Hear <= 1 {
				return false // all are heard, or taken out
			}
			continue
		}
		if m.tailVoid {
			continue
		}
		if m.tailEpoch > epoch || (m.tailEpoch == epoch && m.tailSerial > serial) {
			best, serial, epoch = m, m.tailSerial, m.tailEpoch
		}
	}
	if best == nil {
		return true
	}
	if g.row.Epoch == 1 { // an earlier life acted in it, and this disk never heard of the slice
		g.phase = phaseQuiet
		g.publishRole()
		return false
	}
	if best.sentAt == 0 || g.n.now-best.sentAt >= g.n.c.ResendAfter {
		g.fetchEntries(best.node)
		best.sentAt = g.n.now
	}
	return false
}

func (g *group) fetchEntries(from ids.Node) {
	m := g.newMessage(from, Fetch)
	m.Prev = max(g.commit, g.log.base, g.matched)
	m.PrevEpoch = g.log.epochAt(m.Prev)
}

// onFetch gives the active what it asks for.
func (g *group) onFetch(from ids.Node, m *Message) {
	if g.isMute() || from != g.row.Active || g.incomplete || g.diverged {
		return
	}
	prev := max(m.Prev, g.log.base)
	out := g.n.out
	start, size := len(out.entries), 0
	for s := prev + 1; s <= g.log.last && size < g.n.c.Limits.MessageBytes; s++ {
		e := g.findEntry(s)
		if e == nil {
			g.requestRead(s, g.log.last)
			break
		}
		out.entries = append(out.entries, e)
		size += e.cost()
	}
	if k := len(out.entries); k > start || prev > m.Prev || g.log.epochAt(prev) != m.PrevEpoch {
		a := g.newMessage(from, Fetched)
		a.Prev, a.PrevEpoch = prev, g.log.epochAt(prev)
		a.Entries = out.entries[start:k:k]
	}
}

// onFetched adopts entries. Where they differ from this log's, those here were
// acknowledged by nobody, since the other log is the higher one.
func (g *group) onFetched(from ids.Node, m *Message) {
	mb := g.memberOf(from)
	if g.phase != phaseRecover || !g.mustAdopt || mb == nil || !mb.tailHeard {
		return
	}
	switch {
	case g.log.has(m.Prev) && g.log.epochAt(m.Prev) == m.PrevEpoch:
		if len(m.Entries) == 0 {
			return
		}
		if !g.takeEntries(m.Entries) {
			g.giveUpAdoption(mb)
			return
		}
		g.matched = m.Entries[len(m.Entries)-1].Serial
	case m.Prev > max(g.commit, g.log.base) && m.Prev <= g.log.last:
		g.matched = 0 // what was adopted before is of another log: go back to what is committed
	case m.Prev >= g.log.base && (mb.tailEpoch > g.log.epochAt(g.log.last) || mb.tailSerial > g.log.last):
		g.giveUpAdoption(mb)
		return
	}
	mb.sentAt = 0
	g.markDirty()
}

// giveUpAdoption ends the attempt to become equal to a longer log: what this one lacks
// is gone from the other's memory. This node beacons no more, so that another
// one may take over; where none may, it gets the state itself and goes on.
func (g *group) giveUpAdoption(to *member) {
	g.n.event(g, "cannot become equal to a longer log", to.node)
	g.lack.noteSerial(g.n.now, to.tailSerial, to.tailEpoch)
	g.transferNeeded = true
	g.phase = phaseJunior
	g.publishRole()
	g.markDirty()
}
