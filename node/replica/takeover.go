package replica

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// tickStandby takes over if the active was silent for too long. It asks the
// others for their tails a moment before, so that asking costs no time where
// all answer.
func (g *group) tickStandby() {
	n := g.n
	g.tickCompare()
	if n.now >= g.holding.until {
		g.release()
	}
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
	if asked && !g.lacksEntries() && Enough(&row) && g.enoughSound(&row) {
		g.proposeRow(row, "slice.takeover")
	}
}

// Successor names the member that takes over first where a slice's active is
// silent: the first normal standby in the row's order. It is false where there
// is no standby that may. Another one takes over if it does not answer either.
func Successor(row *geoconfig.SliceRow) (ids.Node, bool) {
	next := row.Clone()
	setState(&next, row.Active, geoconfig.Failed)
	if normals := next.Normals(); len(normals) > 0 && Enough(&next) {
		return normals[0], true
	}
	return "", false
}

// enoughSound is Enough, without the members that have lost their disks.
// Nothing could be acknowledged with them, and too few would be left without.
func (t *takeover) enoughSound(row *geoconfig.SliceRow) bool {
	sound := row.Clone()
	for i := range t.members {
		if m := &t.members[i]; m.hasOtherDisk() {
			setState(&sound, m.node, geoconfig.Failed)
		}
	}
	return Enough(&sound)
}

// announceRow sends the row to the other members while the active is silent.
// The active may not know that it is the active, or that another one is.
func (t *takeover) announceRow() {
	if t.n.now-t.announcedAt < t.n.c.ResendAfter {
		return
	}
	t.announcedAt = t.n.now
	for i := range t.members {
		if m := &t.members[i]; m.peer != nil && m.state != geoconfig.Failed {
			t.sendRow(m.node, Row)
		}
	}
}

// standbyRank spreads the standbys' attempts, so that one of them usually wins
// at once.
func (t *takeover) standbyRank() Time {
	k := Time(0)
	for i := range t.members[:t.self] {
		if m := &t.members[i]; m.state == geoconfig.Normal && m.node != t.row.Active {
			k++
		}
	}
	return k
}

// askTails asks the other normal members for their last serials and reports
// whether this node may take over. It may if as many have answered as the row
// demands, if all members in reach have answered, and if none of them has
// more. A member that has more takes over itself. If it does not, this node
// gives way for a while only, since it can adopt the longer log afterwards.
func (t *takeover) askTails() bool {
	if t.n.c.Bugs.TakeoverHearsOne || t.n.c.Bugs.TakesOverAlone && t.row.Hear <= 1 {
		return true
	}
	if t.candidate == nil {
		t.candidate = &candidate{since: t.n.now}
	}
	c := t.candidate
	others := 0
	for i := range t.members {
		if m := &t.members[i]; m.peer != nil && m.state == geoconfig.Normal && m.node != t.row.Active {
			others++
		}
	}
	patient := t.n.now-c.since < t.n.c.ResendAfter
	all := len(c.answered) >= others
	if !all && (c.askedAt == 0 || t.n.now-c.askedAt >= t.n.c.ResendAfter) {
		c.askedAt = t.n.now
		for i := range t.members {
			if m := &t.members[i]; m.peer != nil && m.state == geoconfig.Normal {
				t.sendQuery(m)
			}
		}
	}
	if len(c.answered)+1 < t.row.Hear || !all && patient {
		return false
	}
	// The member that has more may have just started, and be quiet.
	return c.longerAt == 0 || t.n.now-c.longerAt > t.n.c.Wait+t.n.c.Lease/2
}

func (c *common) onQuery(from ids.Node) {
	if c.isMute() || c.self < 0 || c.members[c.self].state != geoconfig.Normal || c.phase == phaseNone {
		return
	}
	m := c.newMessage(from, Tail)
	c.describeLog(m)
	m.Serial, m.SerialEpoch = c.commonSerial, c.commonEpoch
	if c.incomplete {
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

// tickQuiet waits until the active may act that restarted, or that did not
// take over in this life. An earlier life may have sent entries of this epoch
// that are not on this disk. The active therefore goes on in a new epoch,
// unless no other member can have got them.
func (l *leading) tickQuiet() {
	l.tickCompare()
	if l.n.quiet() || l.n.now < l.quietUntil || l.stuck || l.n.halted() || l.isMute() || l.swap != nil {
		return
	}
	if l.lacksEntries() && l.n.now-max(l.lack.since, l.n.c.Start+l.n.c.Wait) < 2*l.n.c.Lease {
		return // the others, which have it, may take over first
	}
	alone := !l.intentRecorded
	for i := range l.members {
		if m := &l.members[i]; m.peer != nil && m.state != geoconfig.Failed {
			alone = false
		}
	}
	if !alone {
		l.proposeRow(l.nextRow(), "slice.restarted")
		return
	}
	l.mustAdopt = false // there is no other
	l.beginRecovery()
}
