package replica

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// candidate is a standby whose promise is about to end, or has ended, and that
// asks the others what they have.
type candidate struct {
	since    Time
	askedAt  Time
	answered []ids.Node
	longerAt Time // when one was first heard that has more than this node; 0: none
}

// hasDecided reports whether a takeover was decided: from before its swap is sent
// until the outcome is read.
func (g *group) hasDecided() bool { return g.phase == phaseStandby && g.swap != nil }

// tickStandby takes over if the active was not heard for too long. It asks the
// others a moment before, so that this costs no time where all answer.
func (g *group) tickStandby() {
	n := g.n
	g.tickCompare()
	if g.stuck || n.halted() || n.quiet() || g.isMute() || g.hasDecided() || g.incomplete {
		return
	}
	limit := n.c.Wait + g.standbyRank()*2*n.c.TickEvery
	if n.now-g.waitFrom <= limit-n.c.ResendAfter {
		return
	}
	asked := g.askTails()
	if n.now-g.waitFrom <= limit {
		return
	}
	g.announceRow()
	row := g.nextRow()
	setState(&row, row.Active, geoconfig.Failed)
	row.Active = n.c.Self
	if asked && !g.lacksEntries() && enough(&row) && g.enoughSound(&row) {
		g.proposeRow(row, "slice.takeover")
	}
}

// enoughSound is enough without the members that have lost their disks: nothing
// could be acknowledged with them, and too few would be left without.
func (g *group) enoughSound(row *geoconfig.SliceRow) bool {
	sound := row.Clone()
	for i := range g.members {
		if m := &g.members[i]; m.hasOtherDisk() {
			setState(&sound, m.node, geoconfig.Failed)
		}
	}
	return enough(&sound)
}

// announceRow tells the row to the others while the active is not heard: it may not
// know that it is the active, or that another one is.
func (g *group) announceRow() {
	if g.n.now-g.announcedAt < g.n.c.ResendAfter {
		return
	}
	g.announcedAt = g.n.now
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil && m.state != geoconfig.Failed {
			g.sendRow(m.node, Row)
		}
	}
}

// standbyRank spreads the standbys' attempts, so that one usually wins at once.
func (g *group) standbyRank() Time {
	k := Time(0)
	for i := range g.members[:g.self] {
		if m := &g.members[i]; m.state == geoconfig.Normal && m.node != g.row.Active {
			k++
		}
	}
	return k
}

// askTails asks the other normal members for their last serials and reports
// whether this node may take over: as many as the row demands have answered, so
// have all that can be reached, and none has more. One that has more takes over
// itself; where it does not, this node gives way for a while only, since it can
// make itself equal afterwards.
func (g *group) askTails() bool {
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
	all := len(c.answered) >= others
	if !all && (c.askedAt == 0 || g.n.now-c.askedAt >= g.n.c.ResendAfter) {
		c.askedAt = g.n.now
		for i := range g.members {
			if m := &g.members[i]; m.peer != nil && m.state == geoconfig.Normal {
				g.sendQuery(m)
			}
		}
	}
	if len(c.answered)+1 < g.row.Hear || !all && patient {
		return false
	}
	return c.longerAt == 0 || g.n.now-c.longerAt > g.n.c.Wait+g.n.c.Lease/2 // it may just have started, and be quiet
}

func (g *group) sendQuery(m *member) { g.describeLog(g.newMessage(m.node, Query)) }

func (g *group) onQuery(from ids.Node) {
	if g.isMute() || g.self < 0 || g.members[g.self].state != geoconfig.Normal || g.phase == phaseNone {
		return
	}
	m := g.newMessage(from, Tail)
	g.describeLog(m)
	m.Serial, m.SerialEpoch = g.commonSerial, g.commonEpoch
	if g.incomplete {
		m.Flags |= FlagIncomplete
	}
}

func (g *group) onTail(from ids.Node, m *Message) {
	mb := g.memberOf(from)
	if mb == nil || mb.state != geoconfig.Normal || mb.hasOtherDisk() {
		return
	}
	mb.hasCompared = true
	g.noteCommon(m)
	c := g.candidate
	if c == nil || from == g.row.Active || slices.Contains(c.answered, from) || g.phase != phaseStandby || m.Flags&FlagIncomplete != 0 {
		return
	}
	c.answered = append(c.answered, from)
	epoch := g.log.epochAt(g.log.last)
	if c.longerAt == 0 && (m.PrevEpoch > epoch || m.PrevEpoch == epoch && m.Prev > g.log.last) {
		c.longerAt = g.n.now
	}
	g.tickStandby()
}

// tickQuiet waits until an active that restarted, or that did not take over in
// this life, may act. An earlier life may have sent entries of this epoch that
// are not on this disk, so it goes on in a new one, unless nobody can have got
// them.
func (g *group) tickQuiet() {
	g.tickCompare()
	if g.n.quiet() || g.n.now < g.quietUntil || g.stuck || g.n.halted() || g.isMute() || g.swap != nil {
		return
	}
	if g.lacksEntries() && g.n.now-max(g.lack.since, g.n.c.Start+g.n.c.Wait) < 2*g.n.c.Lease {
		return // the others, which have it, may take over first
	}
	alone := !g.intentRecorded
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil && m.state != geoconfig.Failed {
			alone = false
		}
	}
	if !alone {
		g.proposeRow(g.nextRow(), "slice.restarted")
		return
	}
	g.mustAdopt = false // there is no other
	g.beginRecovery()
}
