package replica

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// candidate is a standby whose promise is about to end, or has ended, and that
// asks the others what they have.
type candidate struct {
	since   Time
	askedAt Time
	heard   []ids.Node
	longer  Time // when one was first heard that has more than this node; 0: none
}

// decided reports whether a takeover was decided: from before its swap is sent
// until the outcome is read.
func (g *group) decided() bool { return g.phase == phaseStandby && g.swap != nil }

// tickStandby takes over if the active was not heard for too long. It asks the
// others a moment before, so that this costs no time where all answer.
func (g *group) tickStandby() {
	n := g.n
	g.tickCompare()
	if g.stuck || n.halted() || n.quiet() || g.mute() || g.decided() || g.incomplete {
		return
	}
	limit := n.c.Wait + g.rank()*2*n.c.TickEvery
	if n.now-g.heardAt <= limit-n.c.ResendAfter {
		return
	}
	asked := g.canvass()
	if n.now-g.heardAt <= limit {
		return
	}
	g.rouse()
	row := g.nextRow()
	setState(&row, row.Active, geoconfig.Failed)
	row.Active = n.c.Self
	if asked && !g.lacks() && enough(&row) && g.enoughSound(&row) {
		g.propose(row, "slice.takeover")
	}
}

// enoughSound is enough without the members that have lost their disks: nothing
// could be acknowledged with them, and too few would be left without.
func (g *group) enoughSound(row *geoconfig.SliceRow) bool {
	sound := row.Clone()
	for i := range g.members {
		if m := &g.members[i]; g.foreign(m) {
			setState(&sound, m.node, geoconfig.Failed)
		}
	}
	return enough(&sound)
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
// whether this node may take over: as many as the row demands have answered, so
// have all that can be reached, and none has more. One that has more takes over
// itself; where it does not, this node gives way for a while only, since it can
// make itself equal afterwards.
func (g *group) canvass() bool {
	if g.n.c.Bugs.TakeoverHearsOne || g.n.c.Bugs.TakesOverAlone && g.row.Hear <= 1 {
		return true
	}
	if g.candidate == nil {
		g.candidate = &candidate{since: g.n.now}
	}
	c := g.candidate
	others := 0
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil && m.state == geoconfig.Normal && m.node != g.row.Active {
			others++
		}
	}
	patient := g.n.now-c.since < g.n.c.ResendAfter
	all := len(c.heard) >= others
	if !all && (c.askedAt == 0 || g.n.now-c.askedAt >= g.n.c.ResendAfter) {
		c.askedAt = g.n.now
		for i := range g.members {
			if m := &g.members[i]; m.peer != nil && m.state == geoconfig.Normal {
				g.query(m)
			}
		}
	}
	if len(c.heard)+1 < g.row.Hear || !all && patient {
		return false
	}
	return c.longer == 0 || g.n.now-c.longer > g.n.c.Wait+g.n.c.Lease/2 // it may just have started, and be quiet
}

func (g *group) query(m *member) { g.describe(g.message(m.node, Query)) }

func (g *group) onQuery(from ids.Node) {
	if g.mute() || g.self < 0 || g.members[g.self].state != geoconfig.Normal || g.phase == phaseNone {
		return
	}
	m := g.message(from, Tail)
	g.describe(m)
	m.Serial, m.SerialEpoch = g.common, g.commonEpoch
	if g.incomplete {
		m.Flags |= FlagIncomplete
	}
}

func (g *group) onTail(from ids.Node, m *Message) {
	mb := g.memberOf(from)
	if mb == nil || mb.state != geoconfig.Normal || g.foreign(mb) {
		return
	}
	mb.compared = true
	g.hearCommon(m)
	c := g.candidate
	if c == nil || from == g.row.Active || slices.Contains(c.heard, from) || g.phase != phaseStandby || m.Flags&FlagIncomplete != 0 {
		return
	}
	c.heard = append(c.heard, from)
	epoch := g.log.epochAt(g.log.last)
	if c.longer == 0 && (m.PrevEpoch > epoch || m.PrevEpoch == epoch && m.Prev > g.log.last) {
		c.longer = g.n.now
	}
	g.tickStandby()
}

// tickQuiet waits until an active that restarted, or that did not take over in
// this life, may act. An earlier life may have sent entries of this epoch that
// are not on this disk, so it goes on in a new one, unless nobody can have got
// them.
func (g *group) tickQuiet() {
	g.tickCompare()
	if g.n.quiet() || g.n.now < g.quietTo || g.stuck || g.n.halted() || g.mute() || g.swap != nil {
		return
	}
	if g.lacks() && g.n.now-max(g.lack.since, g.n.c.Start+g.n.c.Wait) < 2*g.n.c.Lease {
		return // the others, which have it, may take over first
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
	g.adopt = false // there is no other
	g.beginRecovery()
}
