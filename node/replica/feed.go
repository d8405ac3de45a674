package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// feedMember goes on with one member according to its feedState.
func (l *leading) feedMember(m *member) {
	if m.peer == nil || m.state == geoconfig.Failed || m.hasOtherDisk() {
		return
	}
	due := m.sentAt == 0 || l.n.now-m.sentAt >= l.n.c.ResendAfter
	switch state := m.feedState(); {
	case state == feedProbe && due:
		l.sendProbe(m)
	case state == feedProbe || l.phase == phaseRecover:
	case state == feedBehind && due:
		l.sendBehind(m)
	case state == feedEntries:
		l.fillFlight(m)
	}
}

// sendBehind tells a member that it cannot go on with the entries here.
func (l *leading) sendBehind(m *member) {
	m.sentAt = l.n.now
	b := l.newMessage(m.node, Behind)
	b.Serial, b.SerialEpoch = l.log.base, l.log.baseEpoch
	if m.divergedThere {
		b.Flags |= FlagDiverged
		b.Commit, b.CommitEpoch = m.divergedSerial, m.divergedEpoch
	}
}

// fillFlight sends a member entries as far as its share in flight allows, and
// the probe that is due.
func (l *leading) fillFlight(m *member) {
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
	if l.isCoherent() {
		a.Term = l.term
	}
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
	m.tail.hear(a)
	if l.phase == phaseRecover {
		return
	}
	m.setIncomplete(a.Flags&FlagIncomplete != 0)
	m.knownCommit = a.Commit
	if a.Kind == Mismatch {
		l.onMismatch(m, a)
		return
	}
	if !m.isCurrent(uint64(a.SerialEpoch)) {
		return
	}
	m.catchUp()
	if m.incomplete {
		m.arrived(a.Prev) // its transfer may yet begin anew
		return
	}
	m.acknowledge(max(a.Serial, a.Logged), l.log.last, l.n.now)
	m.noteWhole(a, l.n.now)
	l.markLag(m)
	l.advanceCommit()
}

// confirmMember notes that this life of a member has this epoch, and where to
// go on with its log.
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

// compareLives looks whether a new life of a member has what the earlier one
// acknowledged. Its disk may have gone back to an older state. The active then
// sends what is missing again.
func (l *leading) compareLives(m *member, a *Message) {
	if m.match == 0 || a.Prev >= m.match || a.Flags&FlagIncomplete != 0 || l.n.c.Bugs.TrustsMatch {
		return
	}
	match := a.Prev
	if l.log.epochAt(a.Prev) != a.PrevEpoch {
		match = 0
	}
	m.loseMatch(match)
	l.n.event(l.common, "came back with less than it had acknowledged", m.node)
}

// onMismatch finds out where to go on with a member whose log differs.
func (l *leading) onMismatch(m *member, a *Message) {
	diverged := a.Commit > l.log.last || (a.Commit >= l.log.base && l.log.epochAt(a.Commit) != a.CommitEpoch)
	m.divergedThere, m.divergedSerial, m.divergedEpoch = diverged, a.Commit, a.CommitEpoch
	if a.Flags&FlagDiverged != 0 || diverged {
		m.fallBehind()
		return
	}
	base := l.log.base
	// Serial is what it was asked for, if it has another entry there. No answer
	// to an older message can say this of where the log begins, and no answer that
	// says nothing of that place takes it back.
	switch {
	case a.Prev < base, a.Serial == base && base > 0 && a.SerialEpoch != l.log.baseEpoch:
		m.fallBehind()
	case l.logAgrees(a.Prev, a.PrevEpoch), l.logAgrees(a.Commit, a.CommitEpoch):
		m.catchUp()
	}
	if !m.behind && m.hasResent(a.Prev+1, l.n.now, l.n.c.ResendAfter) {
		return // no storm
	}
	if l.logAgrees(a.Prev, a.PrevEpoch) {
		m.resendFrom(a.Prev+1, l.n.now)
	} else {
		m.resendFrom(max(min(a.Commit, l.log.last), base)+1, l.n.now)
	}
}

// onRefuse handles a message from a peer of another epoch. Its row, if newer,
// has been learned.
func (l *leading) onRefuse(from ids.Node, m *Message) {
	if m.Epoch < l.row.Epoch {
		l.sendRow(from, Row)
	} else if mb := l.memberOf(from); mb != nil && mb.peer != nil && m.Epoch == l.row.Epoch && l.isActing() {
		mb.probeDue = true // a standby that does not hear this active
	}
	l.markDirty()
}
