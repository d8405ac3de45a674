package replica

import (
	"cartwheel.dev/geo-config/ids"
)

// onAppend takes entries, the commit serial and probes from the active.
func (g *group) onAppend(from ids.Node, a *Message) {
	if from != g.row.Active && !g.n.c.Bugs.NoEpochCheck {
		return
	}
	if (g.phase != phaseStandby && g.phase != phaseJunior) || g.hasDecided() {
		return
	}
	g.leader = from
	g.noteCommon(a)
	g.following.term = max(g.following.term, a.Term)
	if a.Flags&FlagProbe != 0 {
		g.ackDue = true
	}
	if g.diverged || (g.incomplete && !g.transferBegun) {
		g.sendMismatch(from, FlagDiverged|FlagIncomplete)
		return
	}
	prev, entries := a.Prev, a.Entries
	for len(entries) > 0 && prev < g.log.base {
		prev++
		entries = entries[1:]
	}
	if prev < g.log.base {
		if a.Flags&FlagProbe != 0 {
			g.sendMismatch(from, 0)
		}
		return
	}
	if prev > g.log.last {
		g.sendMismatch(from, 0)
		return
	}
	if prev == a.Prev && g.log.epochAt(prev) != a.PrevEpoch {
		if prev <= g.commit {
			g.noteDivergence()
		}
		if m := g.sendMismatch(from, 0); m != nil {
			m.Serial, m.SerialEpoch = prev, g.log.epochAt(prev)
		}
		return
	}
	if g.incomplete {
		entries = g.delayEntries(entries)
	}
	if !g.takeEntries(entries) {
		g.sendMismatch(from, 0)
		return
	}
	g.verified, g.behindSince = true, 0
	g.rejoin()
	g.matched = max(g.matched, prev+ids.Serial(len(entries)))
	g.leaderCommit = max(g.leaderCommit, a.Commit)
	g.onAllNormal = max(g.onAllNormal, min(a.Serial, g.matched))
	g.followActive()
}

// followActive applies the entries that are committed and on this disk.
func (f *following) followActive() {
	c := min(f.leaderCommit, f.matched, f.durable)
	if c > f.commit {
		f.commit = c
		f.stable = max(f.stable, c)
	}
	f.applyUpTo(f.commit)
	f.markDirty()
}

// acknowledge tells the active what is on this disk, if that is news or was
// asked for.
func (f *following) acknowledge() {
	if (f.phase != phaseStandby && f.phase != phaseJunior) || f.hasDecided() {
		return
	}
	if f.mismatchDue {
		f.mismatchDue = false
		f.sendMismatch(f.leader, 0)
	}
	s := min(f.heldSerial(), f.matched)
	logged := s
	if f.isCoherent() {
		s, logged = min(f.wholeSerial(), f.matched), min(f.loggedSerial(), f.matched)
	}
	if f.incomplete {
		s = min(f.durable, f.matched) // it counts for nothing yet, so chunks do not matter
		logged = s
	}
	if !f.verified || f.diverged || (s <= f.ackedTo && logged <= f.loggedTo && !f.ackDue) {
		return
	}
	f.ackedTo, f.loggedTo = max(f.ackedTo, s), max(f.loggedTo, logged)
	f.ackDue = false
	a := f.newMessage(f.leader, Ack)
	a.Serial, a.SerialEpoch = s, ids.Epoch(f.resetCount)
	f.describeLog(a)
	if f.isCoherent() {
		a.Logged = logged
		if f.hasStrays() {
			a.Flags |= FlagStrays
		}
	}
	if f.incomplete {
		a.Flags |= FlagIncomplete
	}
	if f.n.leaving {
		a.Flags |= FlagLeaving
	}
}

func (f *following) sendMismatch(to ids.Node, flags Flags) *Message {
	if f.isMute() {
		f.mismatchDue = true
		return nil
	}
	f.ackDue = false
	m := f.newMessage(to, Mismatch)
	m.Flags |= flags
	if f.incomplete {
		m.Flags |= FlagIncomplete
	}
	m.Flags |= f.divergedFlag()
	f.describeLog(m)
	return m
}
