package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// advancePhase moves an active on as far as it can go.
func (g *group) advancePhase() {
	if g.phase == phaseRecover && (!g.mustAdopt || g.adoptLongest()) {
		g.phase = phaseSync
		g.noopSerial = g.log.last + 1
		e := &Entry{Slice: g.id, Serial: g.noopSerial, Epoch: g.row.Epoch, Time: g.log.time + 1}
		for i := range g.members {
			g.members[i].probeDue = true
		}
		g.uncommitted += e.cost()
		g.storeEntry(e)
	}
	if g.phase == phaseSync && g.commit >= g.noopSerial && g.applied == g.commit && g.leaseUntil() > g.n.now {
		g.phase = phaseLead
		g.leaseEnd = g.leaseUntil()
		g.n.event(g, "leading", g.n.c.Self)
		g.publishRole()
	}
	if g.phase == phaseLead {
		g.advanceHandover()
		g.raiseQuorum()
	}
}

// advanceCommit raises the commit serial: everything up to it is on this disk and on
// those of all members required, or of as many as the operation asked for.
func (g *group) advanceCommit() {
	if (g.phase != phaseSync && g.phase != phaseLead) || g.leaseUntil() <= g.n.now {
		return
	}
	all := g.heldSerial()
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil && (g.isRequired(m) || g.inLastStep(m)) {
			all = min(all, m.match)
		}
	}
	g.onAllNormal = max(g.onAllNormal, all)
	if all > g.commonSerial {
		g.commonSerial, g.commonEpoch = all, g.log.epochAt(all)
	}
	c, stable := all, all
	if g.phase == phaseLead && g.swap == nil && !g.lastSteps() {
		c, stable = g.reachBelowAll(all)
	}
	if stable > g.stable {
		g.stable = stable
	}
	if c > g.commit {
		g.commitTo(c)
	}
	if g.phase == phaseSync && g.commit >= g.noopSerial {
		g.markDirty()
	}
}

// reachBelowAll finds how far beyond what all have the levels asked for reach: c may
// be acknowledged, stable is what a takeover will hear of.
func (g *group) reachBelowAll(all ids.Serial) (c, stable ids.Serial) {
	c, stable = all, all
	n, have := g.normals(), g.heldSerial()
	for s := max(all, g.commit) + 1; s <= have; s++ {
		e := g.log.get(s)
		if e == nil || e.Level == 0 || int(e.Level) >= n {
			break
		}
		q := int(e.Level)
		if q > 1 {
			g.belowAllAt = g.n.now
			if g.row.Hear < n-q+1 {
				g.wantedQuorum = max(g.wantedQuorum, n-q+1)
				g.markDirty()
				break
			}
			if g.countHolders(s) < q {
				break
			}
			stable = s
		}
		c = s
	}
	if c > all {
		g.belowAllMax = max(g.belowAllMax, c)
	}
	return c, stable
}

// countHolders counts the normal members that have an entry on disk, this one
// among them.
func (g *group) countHolders(s ids.Serial) int {
	k := 0
	for i := range g.members {
		m := &g.members[i]
		if m.state == geoconfig.Normal && (m.peer == nil || m.match >= s) {
			k++
		}
	}
	return k
}

// commitTo commits, applies and answers.
func (g *group) commitTo(c ids.Serial) {
	for s := g.commit + 1; s <= c; s++ {
		if e := g.log.get(s); e != nil {
			g.uncommitted = max(0, g.uncommitted-e.cost())
		}
	}
	g.commit = c
	g.applyUpTo(c)
	for len(g.waiting) > 0 && g.waiting[0].serial <= c {
		g.answerWaiter(g.waiting[0])
		g.waiting = g.waiting[1:]
	}
	kept := g.retries[:0]
	for _, w := range g.retries {
		if w.serial <= c {
			g.answerWaiter(w)
		} else {
			kept = append(kept, w)
		}
	}
	g.retries = kept
	g.markDirty()
}

func (g *group) answerWaiter(w waiter) {
	e := g.log.get(w.serial)
	if e == nil {
		g.n.out.Replies = append(g.n.out.Replies, Reply{Slice: g.id, Token: w.token, Kind: fault.TimedOut})
		return
	}
	delete(g.inflight, operation{e.Client, e.Number})
	g.n.out.Replies = append(g.n.out.Replies, Reply{Slice: g.id, Token: w.token, Serial: e.Serial, Epoch: e.Epoch,
		Time: e.Time, Result: e.Result})
}

// feedMember sends a member what it does not have, within bounds. A member not known
// to have this epoch gets the row and a question first.
func (g *group) feedMember(m *member) {
	if m.peer == nil || m.state == geoconfig.Failed || m.hasOtherDisk() {
		return
	}
	due := m.sentAt == 0 || g.n.now-m.sentAt >= g.n.c.ResendAfter
	if !m.confirmed {
		if due {
			g.sendProbe(m)
		}
		return
	}
	if g.phase == phaseRecover {
		return
	}
	if m.behind {
		if due {
			m.sentAt = g.n.now
			b := g.newMessage(m.node, Behind)
			b.Serial, b.SerialEpoch = g.log.base, g.log.baseEpoch
			if m.divergedThere {
				b.Flags |= FlagDiverged
				b.Commit, b.CommitEpoch = m.divergedSerial, m.divergedEpoch
			}
		}
		return
	}
	for m.next <= g.log.last && m.inFlight < g.n.c.Limits.FlightBytes {
		if !g.sendEntries(m) {
			break
		}
	}
	if m.probeDue {
		g.sendProbe(m)
	}
}

// sendEntries sends one message of entries; false if there are none to send now.
func (g *group) sendEntries(m *member) bool {
	if m.next <= g.log.base {
		m.next = g.log.base + 1 // it may have more than it said to be committed
		g.sendProbe(m)
		return false
	}
	out := g.n.out
	start, size := len(out.entries), 0
	prev := m.next - 1
	for m.next <= g.log.last && size < g.n.c.Limits.MessageBytes {
		e := g.findEntry(m.next)
		if e == nil {
			g.requestRead(m.next, g.log.last)
			break
		}
		out.entries = append(out.entries, e)
		size += e.cost()
		m.next++
	}
	k := len(out.entries)
	if k == start {
		return false
	}
	if prev == m.match {
		m.progressAt = g.n.now
	}
	m.inFlight += size
	a := g.newAppend(m, prev)
	a.Entries = out.entries[start:k:k]
	return true
}

// sendProbe sends an append without entries that wants an answer.
func (g *group) sendProbe(m *member) {
	prev := m.next - 1
	if !m.confirmed {
		prev = g.commit // what no adoption replaces
		if g.phase != phaseRecover {
			prev = g.log.last
		}
	}
	a := g.newAppend(m, max(prev, g.log.base))
	a.Flags |= FlagProbe
}

func (g *group) newAppend(m *member, prev ids.Serial) *Message {
	a := g.newMessage(m.node, Append)
	a.Prev, a.PrevEpoch = prev, g.log.epochAt(prev)
	a.Commit = g.stable
	a.Serial, a.SerialEpoch = g.commonSerial, g.commonEpoch
	if !m.confirmed {
		a.Row = g.row
	}
	if m.probeDue {
		a.Flags |= FlagProbe
		m.probeDue = false
	}
	m.sentAt = g.n.now
	return a
}

// onAck learns what a member has.
func (g *group) onAck(from ids.Node, a *Message) {
	m := g.memberOf(from)
	if m == nil || m.peer == nil || !g.isActing() || m.hasOtherDisk() {
		return
	}
	if m.peer.boot == 0 {
		m.peer.boot = a.Boot
	}
	if m.peer.boot != a.Boot {
		return // of an earlier life, or of one whose first beacon is still to come
	}
	if !m.confirmed {
		g.confirmMember(m, a)
	}
	if a.Flags&FlagLeaving != 0 {
		m.leavingBoot = a.Boot
	}
	if !m.tailHeard || m.tailVoid {
		m.tailHeard, m.tailSerial, m.tailEpoch = true, a.Prev, a.PrevEpoch
		m.tailVoid = a.Flags&FlagIncomplete != 0
	}
	if g.phase == phaseRecover {
		return
	}
	m.incomplete, m.knownCommit = a.Flags&FlagIncomplete != 0, a.Commit
	if m.incomplete {
		m.match = 0
	}
	if a.Kind == Mismatch {
		g.onMismatch(m, a)
		return
	}
	if r := uint64(a.SerialEpoch); r != m.resetCount {
		if r < m.resetCount {
			return
		}
		m.resetCount, m.match = r, 0
	}
	m.behind = false
	if m.incomplete {
		// It may yet begin anew; it counts for nothing until it is whole.
		m.arrived(a.Prev)
		return
	}
	if a.Serial > m.match && a.Serial <= g.log.last {
		if outstanding := int(m.next - 1 - m.match); outstanding > 0 {
			m.inFlight -= int(int64(m.inFlight) * int64(min(int(a.Serial-m.match), outstanding)) / int64(outstanding))
		}
		m.match, m.progressAt = a.Serial, g.n.now
		if m.match >= m.regain {
			m.regain = 0
		}
	}
	if m.next <= m.match {
		m.next = m.match + 1
	}
	if m.next == m.match+1 {
		m.inFlight = 0
	}
	g.advanceCommit()
}

// confirmMember notes that this life of a member has this epoch, and where to go on
// with it.
func (g *group) confirmMember(m *member, a *Message) {
	g.compareLives(m, a)
	if a.Prev <= g.log.last && g.log.epochAt(a.Prev) == a.PrevEpoch {
		m.next = max(m.match, a.Prev) + 1 // all before is equal, if not yet on its disk
	} else {
		m.next = max(m.match, min(a.Commit, g.log.last), g.log.base) + 1
	}
	m.confirmed, m.confirmedAfter = true, m.peer.sequence
	m.willingAt = g.n.now
	m.peer.beaconDue = true
	g.hurryBeacons()
}

// compareLives looks whether a member, in a new life, has what it acknowledged:
// its disk may have gone back to an older state. What it lacks it gets again.
func (g *group) compareLives(m *member, a *Message) {
	if m.match == 0 || a.Prev >= m.match || a.Flags&FlagIncomplete != 0 || g.n.c.Bugs.TrustsMatch {
		return
	}
	m.regain = max(m.regain, m.match)
	if m.match = a.Prev; g.log.epochAt(a.Prev) != a.PrevEpoch {
		m.match = 0
	}
	g.n.event(g, "came back with less than it had acknowledged", m.node)
}

// onMismatch finds where to go on with a member.
func (g *group) onMismatch(m *member, a *Message) {
	lost := a.Commit > g.log.last || (a.Commit >= g.log.base && g.log.epochAt(a.Commit) != a.CommitEpoch)
	m.divergedThere, m.divergedSerial, m.divergedEpoch = lost, a.Commit, a.CommitEpoch
	if a.Flags&FlagDiverged != 0 || lost {
		m.behind = true
		return
	}
	base := g.log.base
	// Serial is what it was asked for, if it has another entry there. No answer
	// to an older message can say this of where the log begins, and no answer that
	// says nothing of that place takes it back.
	switch {
	case a.Prev < base, a.Serial == base && base > 0 && a.SerialEpoch != g.log.baseEpoch:
		m.behind = true
	case g.logAgrees(a.Prev, a.PrevEpoch), g.logAgrees(a.Commit, a.CommitEpoch):
		m.behind = false
	}
	if !m.behind && m.resentFrom <= a.Prev+1 && m.next > a.Prev+1 && m.resentAt != 0 && g.n.now-m.resentAt < g.n.c.ResendAfter {
		return // what was sent again since may just not have arrived: no storm
	}
	if g.logAgrees(a.Prev, a.PrevEpoch) {
		m.next = a.Prev + 1
	} else {
		m.next = max(min(a.Commit, g.log.last), base) + 1
	}
	m.next = max(m.next, m.match+1)
	m.inFlight = 0
	m.resentFrom, m.resentAt = m.next, g.n.now
}

// logAgrees reports whether this log has an entry of that epoch at a serial, or
// begins behind it.
func (g *group) logAgrees(s ids.Serial, epoch ids.Epoch) bool {
	return g.log.has(s) && g.log.epochAt(s) == epoch
}

// tickActive resends, pushes the commit serial, and looks after the members.
func (g *group) tickActive() {
	g.markDirty()
	for i := range g.members {
		m := &g.members[i]
		if m.peer == nil || m.state == geoconfig.Failed || !m.confirmed || m.behind || g.phase == phaseRecover {
			continue
		}
		late := g.n.now-max(m.sentAt, m.progressAt) >= g.n.c.ResendAfter
		// A junior is asked even where nothing is under way, so that no lost
		// message leaves it behind.
		if late && (m.next > m.match+1 || m.state.Junior() || m.knownCommit < g.stable) {
			m.probeDue = true
		} else if g.sentStable < g.stable && m.next > g.log.last && !g.isMute() {
			g.newAppend(m, m.next-1)
		}
	}
	g.sentStable = g.stable
	if g.phase != phaseRecover || g.mustAdopt {
		g.tickMembers()
	}
	g.noteRenewal() // where no standby must promise anything, time alone renews
	g.advanceCommit()
}
