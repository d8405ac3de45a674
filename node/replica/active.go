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
		g.n.event(&g.common, "leading", g.n.c.Self)
		g.publishRole()
	}
	if g.phase == phaseLead {
		g.advanceHandover()
		g.raiseQuorum()
	}
}

// advanceCommit raises the commit serial: everything up to it is on this disk and on
// those of all members required, or of as many as the operation asked for.
func (l *leading) advanceCommit() {
	if (l.phase != phaseSync && l.phase != phaseLead) || l.leaseUntil() <= l.n.now {
		return
	}
	all := l.heldSerial()
	for i := range l.members {
		if m := &l.members[i]; m.peer != nil && (l.isRequired(m) || l.inLastStep(m)) {
			all = min(all, m.match)
		}
	}
	l.onAllNormal = max(l.onAllNormal, all)
	if all > l.commonSerial {
		l.commonSerial, l.commonEpoch = all, l.log.epochAt(all)
	}
	c, stable := all, all
	if l.phase == phaseLead && l.swap == nil && !l.lastSteps() {
		c, stable = l.reachBelowAll(all)
	}
	if stable > l.stable {
		l.stable = stable
	}
	if c > l.commit {
		l.commitTo(c)
	}
	if l.phase == phaseSync && l.commit >= l.noopSerial {
		l.markDirty()
	}
}

// reachBelowAll finds how far beyond what all have the levels asked for reach: c may
// be acknowledged, stable is what a takeover will hear of.
func (l *leading) reachBelowAll(all ids.Serial) (c, stable ids.Serial) {
	c, stable = all, all
	n, have := l.normals(), l.heldSerial()
	for s := max(all, l.commit) + 1; s <= have; s++ {
		e := l.log.get(s)
		if e == nil || e.Level == 0 || int(e.Level) >= n {
			break
		}
		q := int(e.Level)
		if q > 1 {
			l.belowAllAt = l.n.now
			if l.row.Hear < n-q+1 {
				l.wantedQuorum = max(l.wantedQuorum, n-q+1)
				l.markDirty()
				break
			}
			if l.countHolders(s) < q {
				break
			}
			stable = s
		}
		c = s
	}
	if c > all {
		l.belowAllMax = max(l.belowAllMax, c)
	}
	return c, stable
}

// countHolders counts the normal members that have an entry on disk, this one
// among them.
func (l *leading) countHolders(s ids.Serial) int {
	k := 0
	for i := range l.members {
		m := &l.members[i]
		if m.state == geoconfig.Normal && (m.peer == nil || m.match >= s) {
			k++
		}
	}
	return k
}

// commitTo commits, applies and answers.
func (l *leading) commitTo(c ids.Serial) {
	for s := l.commit + 1; s <= c; s++ {
		if e := l.log.get(s); e != nil {
			l.uncommitted = max(0, l.uncommitted-e.cost())
		}
	}
	l.commit = c
	l.applyUpTo(c)
	for len(l.waiting) > 0 && l.waiting[0].serial <= c {
		l.answerWaiter(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
	kept := l.retries[:0]
	for _, w := range l.retries {
		if w.serial <= c {
			l.answerWaiter(w)
		} else {
			kept = append(kept, w)
		}
	}
	l.retries = kept
	l.markDirty()
}

func (l *leading) answerWaiter(w waiter) {
	e := l.log.get(w.serial)
	if e == nil {
		l.n.out.Replies = append(l.n.out.Replies, Reply{Slice: l.id, Token: w.token, Kind: fault.TimedOut})
		return
	}
	delete(l.inflight, operation{e.Client, e.Number})
	l.n.out.Replies = append(l.n.out.Replies, Reply{Slice: l.id, Token: w.token, Serial: e.Serial, Epoch: e.Epoch,
		Time: e.Time, Result: e.Result})
}

// feedMember sends a member what it does not have, within bounds. A member not known
// to have this epoch gets the row and a question first.
func (l *leading) feedMember(m *member) {
	if m.peer == nil || m.state == geoconfig.Failed || m.hasOtherDisk() {
		return
	}
	due := m.sentAt == 0 || l.n.now-m.sentAt >= l.n.c.ResendAfter
	if !m.confirmed {
		if due {
			l.sendProbe(m)
		}
		return
	}
	if l.phase == phaseRecover {
		return
	}
	if m.behind {
		if due {
			m.sentAt = l.n.now
			b := l.newMessage(m.node, Behind)
			b.Serial, b.SerialEpoch = l.log.base, l.log.baseEpoch
			if m.divergedThere {
				b.Flags |= FlagDiverged
				b.Commit, b.CommitEpoch = m.divergedSerial, m.divergedEpoch
			}
		}
		return
	}
	for m.next <= l.log.last && m.inFlight < l.n.c.Limits.FlightBytes {
		if !l.sendEntries(m) {
			break
		}
	}
	if m.probeDue {
		l.sendProbe(m)
	}
}

// sendEntries sends one message of entries; false if there are none to send now.
func (l *leading) sendEntries(m *member) bool {
	if m.next <= l.log.base {
		m.next = l.log.base + 1 // it may have more than it said to be committed
		l.sendProbe(m)
		return false
	}
	out := l.n.out
	start, size := len(out.entries), 0
	prev := m.next - 1
	for m.next <= l.log.last && size < l.n.c.Limits.MessageBytes {
		e := l.findEntry(m.next)
		if e == nil {
			l.requestRead(m.next, l.log.last)
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
		m.progressAt = l.n.now
	}
	m.inFlight += size
	a := l.newAppend(m, prev)
	a.Entries = out.entries[start:k:k]
	return true
}

// sendProbe sends an append without entries that wants an answer.
func (l *leading) sendProbe(m *member) {
	prev := m.next - 1
	if !m.confirmed {
		prev = l.commit // what no adoption replaces
		if l.phase != phaseRecover {
			prev = l.log.last
		}
	}
	a := l.newAppend(m, max(prev, l.log.base))
	a.Flags |= FlagProbe
}

func (l *leading) newAppend(m *member, prev ids.Serial) *Message {
	a := l.newMessage(m.node, Append)
	a.Prev, a.PrevEpoch = prev, l.log.epochAt(prev)
	a.Commit = l.stable
	a.Serial, a.SerialEpoch = l.commonSerial, l.commonEpoch
	if !m.confirmed {
		a.Row = l.row
	}
	if m.probeDue {
		a.Flags |= FlagProbe
		m.probeDue = false
	}
	m.sentAt = l.n.now
	return a
}

// onAck learns what a member has.
func (l *leading) onAck(from ids.Node, a *Message) {
	m := l.memberOf(from)
	if m == nil || m.peer == nil || !l.isActing() || m.hasOtherDisk() {
		return
	}
	if m.peer.boot == 0 {
		m.peer.boot = a.Boot
	}
	if m.peer.boot != a.Boot {
		return // of an earlier life, or of one whose first beacon is still to come
	}
	if !m.confirmed {
		l.confirmMember(m, a)
	}
	if a.Flags&FlagLeaving != 0 {
		m.leavingBoot = a.Boot
	}
	if !m.tailHeard || m.tailVoid {
		m.tailHeard, m.tailSerial, m.tailEpoch = true, a.Prev, a.PrevEpoch
		m.tailVoid = a.Flags&FlagIncomplete != 0
	}
	if l.phase == phaseRecover {
		return
	}
	m.incomplete, m.knownCommit = a.Flags&FlagIncomplete != 0, a.Commit
	if m.incomplete {
		m.match = 0
	}
	if a.Kind == Mismatch {
		l.onMismatch(m, a)
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
	if a.Serial > m.match && a.Serial <= l.log.last {
		if outstanding := int(m.next - 1 - m.match); outstanding > 0 {
			m.inFlight -= int(int64(m.inFlight) * int64(min(int(a.Serial-m.match), outstanding)) / int64(outstanding))
		}
		m.match, m.progressAt = a.Serial, l.n.now
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
	l.advanceCommit()
}

// confirmMember notes that this life of a member has this epoch, and where to go on
// with it.
func (l *leading) confirmMember(m *member, a *Message) {
	l.compareLives(m, a)
	if a.Prev <= l.log.last && l.log.epochAt(a.Prev) == a.PrevEpoch {
		m.next = max(m.match, a.Prev) + 1 // all before is equal, if not yet on its disk
	} else {
		m.next = max(m.match, min(a.Commit, l.log.last), l.log.base) + 1
	}
	m.confirmed, m.confirmedAfter = true, m.peer.sequence
	m.willingAt = l.n.now
	m.peer.beaconDue = true
	l.hurryBeacons()
}

// compareLives looks whether a member, in a new life, has what it acknowledged:
// its disk may have gone back to an older state. What it lacks it gets again.
func (l *leading) compareLives(m *member, a *Message) {
	if m.match == 0 || a.Prev >= m.match || a.Flags&FlagIncomplete != 0 || l.n.c.Bugs.TrustsMatch {
		return
	}
	m.regain = max(m.regain, m.match)
	if m.match = a.Prev; l.log.epochAt(a.Prev) != a.PrevEpoch {
		m.match = 0
	}
	l.n.event(l.common, "came back with less than it had acknowledged", m.node)
}

// onMismatch finds where to go on with a member.
func (l *leading) onMismatch(m *member, a *Message) {
	lost := a.Commit > l.log.last || (a.Commit >= l.log.base && l.log.epochAt(a.Commit) != a.CommitEpoch)
	m.divergedThere, m.divergedSerial, m.divergedEpoch = lost, a.Commit, a.CommitEpoch
	if a.Flags&FlagDiverged != 0 || lost {
		m.behind = true
		return
	}
	base := l.log.base
	// Serial is what it was asked for, if it has another entry there. No answer
	// to an older message can say this of where the log begins, and no answer that
	// says nothing of that place takes it back.
	switch {
	case a.Prev < base, a.Serial == base && base > 0 && a.SerialEpoch != l.log.baseEpoch:
		m.behind = true
	case l.logAgrees(a.Prev, a.PrevEpoch), l.logAgrees(a.Commit, a.CommitEpoch):
		m.behind = false
	}
	if !m.behind && m.resentFrom <= a.Prev+1 && m.next > a.Prev+1 && m.resentAt != 0 && l.n.now-m.resentAt < l.n.c.ResendAfter {
		return // what was sent again since may just not have arrived: no storm
	}
	if l.logAgrees(a.Prev, a.PrevEpoch) {
		m.next = a.Prev + 1
	} else {
		m.next = max(min(a.Commit, l.log.last), base) + 1
	}
	m.next = max(m.next, m.match+1)
	m.inFlight = 0
	m.resentFrom, m.resentAt = m.next, l.n.now
}

// logAgrees reports whether this log has an entry of that epoch at a serial, or
// begins behind it.
func (c *common) logAgrees(s ids.Serial, epoch ids.Epoch) bool {
	return c.log.has(s) && c.log.epochAt(s) == epoch
}

// tickActive resends, pushes the commit serial, and looks after the members.
func (l *leading) tickActive() {
	l.markDirty()
	for i := range l.members {
		m := &l.members[i]
		if m.peer == nil || m.state == geoconfig.Failed || !m.confirmed || m.behind || l.phase == phaseRecover {
			continue
		}
		late := l.n.now-max(m.sentAt, m.progressAt) >= l.n.c.ResendAfter
		// A junior is asked even where nothing is under way, so that no lost
		// message leaves it behind.
		if late && (m.next > m.match+1 || m.state.Junior() || m.knownCommit < l.stable) {
			m.probeDue = true
		} else if l.sentStable < l.stable && m.next > l.log.last && !l.isMute() {
			l.newAppend(m, m.next-1)
		}
	}
	l.sentStable = l.stable
	if l.phase != phaseRecover || l.mustAdopt {
		l.tickMembers()
	}
	l.noteRenewal() // where no standby must promise anything, time alone renews
	l.advanceCommit()
}
