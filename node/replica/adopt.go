package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// hasTakeoverQuorum reports whether as many normal members have spoken in this
// activeship as a takeover must hear. From then on they take nothing more from
// an earlier active.
func (l *leading) hasTakeoverQuorum() bool {
	if l.row.Hear <= 1 || l.phase != phaseRecover || l.n.c.Bugs.TakeoverHearsOne {
		return true
	}
	k := 1
	for i := range l.members {
		if m := &l.members[i]; m.state == geoconfig.Normal && m.tailHeard && !m.tailVoid {
			k++
		}
	}
	return k >= l.row.Hear
}

// adoptLongest makes this log equal to the highest one heard, and reports
// whether it is. Something acknowledged may not be here, because a level below
// all was used or because this node's disk is an old one.
func (g *group) adoptLongest() bool {
	if !g.hasTakeoverQuorum() {
		return false
	}
	var best *member
	serial, epoch := g.log.last, g.log.epochAt(g.log.last)
	for i := range g.members {
		m := &g.members[i]
		if m.peer == nil || m.state != geoconfig.Normal || m.hasOtherDisk() {
			continue // a member that lost its disk has nothing to tell
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

// fetchEntries asks a member for the entries that follow what is certain here.
func (f *following) fetchEntries(from ids.Node) {
	m := f.newMessage(from, Fetch)
	m.Prev = max(f.commit, f.log.base, f.matched)
	m.PrevEpoch = f.log.epochAt(m.Prev)
}

// onFetch gives the active the entries that it asks for.
func (f *following) onFetch(from ids.Node, m *Message) {
	if f.isMute() || from != f.row.Active || f.incomplete || f.diverged {
		return
	}
	prev := max(m.Prev, f.log.base)
	out := f.n.out
	start, size := len(out.entries), 0
	for s := prev + 1; s <= f.log.last && size < f.n.c.Limits.MessageBytes; s++ {
		e := f.findEntry(s)
		if e == nil {
			f.requestRead(s, f.log.last)
			break
		}
		out.entries = append(out.entries, e)
		size += e.cost()
	}
	if k := len(out.entries); k > start || prev > m.Prev || f.log.epochAt(prev) != m.PrevEpoch {
		a := f.newMessage(from, Fetched)
		a.Prev, a.PrevEpoch = prev, f.log.epochAt(prev)
		a.Entries = out.entries[start:k:k]
	}
}

// onFetched adopts entries. Where they differ from this log's, no client got
// an answer for those here, since the other log is the higher one.
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

// giveUpAdoption ends the attempt to adopt a longer log, because the missing
// entries are gone from the other member's memory. This node sends no beacon
// any more, so that another member may take over. If none may, this node gets
// the state by a transfer and goes on.
func (l *leading) giveUpAdoption(to *member) {
	l.n.event(l.common, "cannot become equal to a longer log", to.node)
	l.lack.noteSerial(l.n.now, to.tailSerial, to.tailEpoch)
	l.transferNeeded = true
	l.phase = phaseJunior
	l.publishRole()
	l.markDirty()
}
