package replica

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
)

// candidate is a standby past its promise that asks the others what they have.
type candidate struct {
	askedAt Time
	heard   []geoconfig.NodeID
}

// decided reports whether a takeover was decided: from before its swap is sent
// until the outcome is read.
func (g *group) decided() bool { return g.phase == phaseStandby && g.swap != nil }

// tickStandby takes over if the active was not heard for too long.
func (g *group) tickStandby() {
	n := g.n
	if g.stuck || n.halted() || n.quiet() || g.mute() || g.decided() || g.incomplete {
		return
	}
	if n.now-g.heardAt <= n.c.Wait+g.rank()*2*n.c.TickEvery {
		return
	}
	g.rouse()
	row := g.nextRow()
	setState(&row, row.Active, geoconfig.Failed)
	row.Active = n.c.Self
	if !enough(&row) {
		return
	}
	if g.row.Hear > 1 && !n.c.Bugs.TakeoverHearsOne && !g.canvass() {
		return
	}
	g.propose(row, "slice.takeover")
}

// rouse tells the row to the others while the active is not heard: it may not
// know that it is the active, or that another one is.
func (g *group) rouse() {
	if g.n.now-g.rousedAt < g.n.c.ResendAfter {
		return
	}
	g.rousedAt = g.n.now
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil && m.state != geoconfig.Failed {
			g.tell(m.node, Row)
		}
	}
}

// rank spreads the standbys' attempts, so that one usually wins at once.
func (g *group) rank() Time {
	k := Time(0)
	for i := range g.members[:g.self] {
		if m := &g.members[i]; m.state == geoconfig.Normal && m.node != g.row.Active {
			k++
		}
	}
	return k
}

// canvass asks the other normal members for their last serials and reports
// whether enough have answered.
func (g *group) canvass() bool {
	if g.candidate == nil {
		g.candidate = &candidate{}
	}
	c := g.candidate
	if len(c.heard)+1 >= g.row.Hear {
		return true
	}
	if c.askedAt == 0 || g.n.now-c.askedAt >= g.n.c.ResendAfter {
		c.askedAt = g.n.now
		for i := range g.members {
			if m := &g.members[i]; m.peer != nil && m.state == geoconfig.Normal {
				g.describe(g.message(m.node, Query))
			}
		}
	}
	return false
}

func (g *group) onQuery(from geoconfig.NodeID) {
	if g.mute() || g.self < 0 || g.members[g.self].state != geoconfig.Normal || g.phase == phaseNone {
		return
	}
	g.describe(g.message(from, Tail))
}

func (g *group) onTail(from geoconfig.NodeID, m *Message) {
	c := g.candidate
	if c == nil || from == g.row.Active || slices.Contains(c.heard, from) || g.phase != phaseStandby {
		return
	}
	if mb := g.memberOf(from); mb != nil && mb.state == geoconfig.Normal && !g.foreign(mb) {
		c.heard = append(c.heard, from)
		g.tickStandby()
	}
}

// tickQuiet waits until an active that restarted may act. An earlier life may
// have sent entries of this epoch that are not on this disk, so it goes on in
// a new one, unless nobody can have got them.
func (g *group) tickQuiet() {
	if g.n.quiet() || g.stuck || g.n.halted() || g.mute() || g.swap != nil {
		return
	}
	alone := !g.intent
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil && m.state != geoconfig.Failed {
			alone = false
		}
	}
	if !alone {
		g.propose(g.nextRow(), "slice.restarted")
		return
	}
	g.phase, g.wasActive, g.graceFrom = phaseRecover, true, g.n.now
	g.belowMax = g.log.last
	g.touch()
}

// heardEnough reports whether as many normal members have spoken in this
// activeship as a takeover must hear; from then on they take nothing more from
// an earlier active.
func (g *group) heardEnough() bool {
	if g.row.Hear <= 1 || g.phase != phaseRecover || g.n.c.Bugs.TakeoverHearsOne {
		return true
	}
	k := 1
	for i := range g.members {
		if m := &g.members[i]; m.state == geoconfig.Normal && m.tailHeard {
			k++
		}
	}
	return k >= g.row.Hear
}

// adopted makes this log equal to the highest one heard, and reports whether
// it is. It is needed where something acknowledged may not be here: a level
// below all was used, or this node restarted and its disk may be an old one.
func (g *group) adopted() bool {
	if !g.heardEnough() {
		return false
	}
	var best *member
	serial, epoch := g.log.last, g.log.epochAt(g.log.last)
	for i := range g.members {
		m := &g.members[i]
		if m.peer == nil || m.state != geoconfig.Normal {
			continue
		}
		if !m.tailHeard {
			if g.row.Hear <= 1 {
				return false // after a restart all are heard, or taken out
			}
			continue
		}
		if m.tailEpoch > epoch || (m.tailEpoch == epoch && m.tail > serial) {
			best, serial, epoch = m, m.tail, m.tailEpoch
		}
	}
	if best == nil {
		return true
	}
	if best.sentAt == 0 || g.n.now-best.sentAt >= g.n.c.ResendAfter {
		g.fetch(best.node)
		best.sentAt = g.n.now
	}
	return false
}

func (g *group) fetch(from geoconfig.NodeID) {
	m := g.message(from, Fetch)
	m.Prev = max(g.commit, g.log.base, g.matched)
	m.PrevEpoch = g.log.epochAt(m.Prev)
}

// onFetch gives the active what it asks for.
func (g *group) onFetch(from geoconfig.NodeID, m *Message) {
	if g.mute() || from != g.row.Active || g.incomplete || g.diverged {
		return
	}
	prev := max(m.Prev, g.log.base)
	if prev > g.log.last {
		return
	}
	out := g.n.out
	start, size := len(out.entries), 0
	for s := prev + 1; s <= g.log.last && size < g.n.c.Limits.MessageBytes; s++ {
		e := g.entry(s)
		if e == nil {
			g.wantRead(s, g.log.last)
			break
		}
		out.entries = append(out.entries, e)
		size += e.cost()
	}
	if k := len(out.entries); k > start {
		a := g.message(from, Fetched)
		a.Prev, a.PrevEpoch = prev, g.log.epochAt(prev)
		a.Entries = out.entries[start:k:k]
	}
}

// onFetched adopts entries. Where they differ from this log's, those here were
// acknowledged by nobody, since the other log is the higher one.
func (g *group) onFetched(from geoconfig.NodeID, m *Message) {
	if g.phase != phaseRecover || !g.adopt || len(m.Entries) == 0 || !g.log.has(m.Prev) || g.log.epochAt(m.Prev) != m.PrevEpoch {
		return
	}
	if !g.take(m.Entries) {
		return
	}
	g.matched = max(g.matched, m.Entries[len(m.Entries)-1].Serial)
	if mb := g.memberOf(from); mb != nil {
		mb.sentAt = 0
	}
}
