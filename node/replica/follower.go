package replica

import (
	"cartwheel.dev/geo-config/ids"
)

// onAppend takes what the active sends.
func (g *group) onAppend(from ids.Node, a *Message) {
	if from != g.row.Active && !g.n.c.Bugs.NoEpochCheck {
		return
	}
	if (g.phase != phaseStandby && g.phase != phaseJunior) || g.hasDecided() {
		return
	}
	g.leader = from
	g.noteCommon(a)
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

// delayEntries returns as many of the entries as the delayed-operations log has room
// for, while the state that they follow is being transferred. They stay in
// memory until the rows are here that they change; what has no room is sent
// again later.
func (g *group) delayEntries(entries []*Entry) []*Entry {
	for i, e := range entries {
		if e.Serial <= g.log.last && g.log.epochAt(e.Serial) == e.Epoch {
			continue
		}
		if g.delayedBytes >= g.n.c.Limits.KeepBytes {
			return entries[:i]
		}
		g.delayedBytes += e.cost()
	}
	return entries
}

// takeEntries stores the entries that are not here yet. Where one of another epoch
// stands in an entry's place, it and what follows were never committed and go;
// if they were, this member diverged and false is returned.
func (g *group) takeEntries(entries []*Entry) bool {
	for _, e := range entries {
		if e.Serial <= g.log.last {
			if g.log.epochAt(e.Serial) == e.Epoch || e.Serial <= g.log.base {
				continue
			}
			if e.Serial <= g.commit {
				g.noteDivergence()
				return false
			}
			g.cutLog(e.Serial)
		}
		g.storeEntry(e)
		if len(e.Chunks) > 0 {
			g.unheld = append(g.unheld, EntryID{e.Serial, e.Epoch})
		}
	}
	return true
}

// noteDivergence notes that this member committed what the group did not: it had
// acknowledged it alone, as the client asked (level 1), or lost its disk's
// newest content. Its state must be replaced.
func (g *group) noteDivergence() {
	g.diverged = true
	g.n.event(g, "diverged", g.n.c.Self)
	if g.phase == phaseStandby {
		g.phase = phaseNone
		g.publishRole()
	}
}

func (g *group) divergedFlag() Flags {
	if g.diverged {
		return FlagDiverged | FlagIncomplete
	}
	return 0
}

// followActive applies what is committed and on this disk, and answers.
func (g *group) followActive() {
	c := min(g.leaderCommit, g.matched, g.durable)
	if c > g.commit {
		g.commit = c
		g.stable = max(g.stable, c)
	}
	g.applyUpTo(g.commit)
	g.markDirty()
}

// acknowledge tells the active what is on this disk, if that is news.
func (g *group) acknowledge() {
	if (g.phase != phaseStandby && g.phase != phaseJunior) || g.hasDecided() {
		return
	}
	if g.mismatchDue {
		g.mismatchDue = false
		g.sendMismatch(g.leader, 0)
	}
	s := min(g.heldSerial(), g.matched)
	if g.incomplete {
		s = min(g.durable, g.matched) // counts for nothing: what chunks it lacks is no matter
	}
	if !g.verified || g.diverged || (s <= g.ackedTo && !g.ackDue) {
		return
	}
	g.ackedTo = max(g.ackedTo, s)
	g.ackDue = false
	a := g.newMessage(g.leader, Ack)
	a.Serial, a.SerialEpoch = s, ids.Epoch(g.resetCount)
	g.describeLog(a)
	if g.incomplete {
		a.Flags |= FlagIncomplete
	}
	if g.n.leaving {
		a.Flags |= FlagLeaving
	}
}

// describeLog adds this member's last entry and what it knows to be committed.
func (g *group) describeLog(m *Message) {
	m.Prev, m.PrevEpoch = g.log.last, g.log.epochAt(g.log.last)
	m.Commit = max(g.commit, g.log.base)
	m.CommitEpoch = g.log.epochAt(m.Commit)
}

func (g *group) sendMismatch(to ids.Node, flags Flags) *Message {
	if g.isMute() {
		g.mismatchDue = true
		return nil
	}
	g.ackDue = false
	m := g.newMessage(to, Mismatch)
	m.Flags |= flags
	if g.incomplete {
		m.Flags |= FlagIncomplete
	}
	m.Flags |= g.divergedFlag()
	g.describeLog(m)
	return m
}
