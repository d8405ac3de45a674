package replica

import (
	"slices"

	"cartwheel.dev/geo-config/ids"
)

// storeEntry appends an entry to the log and to the journal. The caller has
// cut off what stood at its serial and after it.
func (c *common) storeEntry(e *Entry) {
	c.log.append(e)
	c.n.record(c, Record{Kind: RecordEntry, Entry: e})
	c.markDirty()
}

// takeEntries stores the entries that are not here yet. An entry of another
// epoch at the same serial was never committed, so it goes, with all that
// follows it. If it was committed here, this member diverged and takeEntries
// returns false.
func (c *common) takeEntries(entries []*Entry) bool {
	for _, e := range entries {
		if e.Serial <= c.log.last {
			if c.log.epochAt(e.Serial) == e.Epoch || e.Serial <= c.log.base {
				continue
			}
			if e.Serial <= c.commit {
				c.noteDivergence()
				return false
			}
			c.cutLog(e.Serial)
		}
		c.storeEntry(e)
		if len(e.Chunks) > 0 {
			c.unheld = append(c.unheld, EntryID{e.Serial, e.Epoch})
		}
	}
	return true
}

// noteDivergence notes that this member committed what the group did not. It
// acknowledged that alone, because the client asked for level 1, or it lost
// the newest content of its disk. A transfer must replace its state.
func (c *common) noteDivergence() {
	c.diverged = true
	c.n.event(c, "diverged", c.n.c.Self)
	if c.phase == phaseStandby {
		c.phase = phaseNone
		c.publishRole()
	}
}

func (c *common) divergedFlag() Flags {
	if c.diverged {
		return FlagDiverged | FlagIncomplete
	}
	return 0
}

// delayEntries returns as many of the entries as may wait in memory while the
// state that they follow is being transferred. They wait until the rows are
// here that they change. The active sends the others again later.
func (c *common) delayEntries(entries []*Entry) []*Entry {
	for i, e := range entries {
		if e.Serial <= c.log.last && c.log.epochAt(e.Serial) == e.Epoch {
			continue
		}
		if c.delayedBytes >= c.n.c.Limits.KeepBytes {
			return entries[:i]
		}
		c.delayedBytes += e.cost()
	}
	return entries
}

// cutLog removes the uncommitted entries from a serial on.
func (c *common) cutLog(from ids.Serial) {
	for s := from; c.incomplete && s <= c.log.last; s++ {
		if e := c.log.get(s); e != nil {
			c.delayedBytes -= e.cost()
		}
	}
	c.log.cut(from)
	c.durable = min(c.durable, from-1)
	for len(c.unheld) > 0 && c.unheld[len(c.unheld)-1].Serial >= from {
		c.unheld = c.unheld[:len(c.unheld)-1]
	}
}

// noteHeld notes that the chunks of an entry are on this disk.
func (c *common) noteHeld(e EntryID) {
	c.unheld = slices.DeleteFunc(c.unheld, func(u EntryID) bool { return u == e })
}

// loggedSerial returns the serial up to which the entries are on this disk.
func (c *common) loggedSerial() ids.Serial {
	if c.n.c.Bugs.AckBeforeSync {
		return c.log.last
	}
	return c.durable
}

// heldSerial returns the serial up to which the entries and their chunks are
// on this disk.
func (c *common) heldSerial() ids.Serial {
	s := c.loggedSerial()
	if len(c.unheld) > 0 {
		s = min(s, c.unheld[0].Serial-1)
	}
	return s
}

// applyUpTo hands over the committed entries up to a serial. It asks for those
// that are not in memory.
func (c *common) applyUpTo(upTo ids.Serial) {
	if c.incomplete {
		if !c.transferBegun {
			return
		}
		upTo = min(upTo, c.applyLimit)
	} else if c.phase == phaseStandby && c.n.now < c.holding.until {
		upTo = min(upTo, c.holding.upTo)
	}
	if c.applied >= upTo {
		return
	}
	out := c.n.out
	start := len(out.entries)
	for c.applied < upTo {
		e := c.findEntry(c.applied + 1)
		if e == nil {
			c.requestRead(c.applied+1, upTo)
			break
		}
		c.clients.apply(e, c.appliedTime)
		c.applied, c.appliedEpoch, c.appliedTime = e.Serial, e.Epoch, e.Time
		c.hasData = c.hasData || len(e.Data) > 0
		if c.incomplete {
			c.delayedBytes -= e.cost()
		}
		c.n.keep(c, e)
		out.entries = append(out.entries, e)
	}
	if k := len(out.entries); k > start {
		out.Applied = append(out.Applied, Apply{Slice: c.id, Entries: out.entries[start:k:k]})
	}
}

// release applies what a Hold held back.
func (c *common) release() {
	if c.holding.until != 0 {
		c.holding = holding{}
		c.applyUpTo(c.commit)
		c.markDirty()
	}
}

// findEntry returns an entry that is in memory or was just read back.
func (c *common) findEntry(s ids.Serial) *Entry {
	if e := c.log.get(s); e != nil {
		return e
	}
	if len(c.readBack) == 0 || s < c.readBack[0].Serial {
		return nil
	}
	i := int(s - c.readBack[0].Serial)
	if i >= len(c.readBack) || c.readBack[i].Epoch != c.log.epochAt(s) {
		return nil
	}
	return c.readBack[i]
}

// requestRead asks for entries out of the journal, one read at a time.
func (c *common) requestRead(from, to ids.Serial) {
	if c.pendingRead.From != 0 {
		return
	}
	c.pendingRead = Read{Slice: c.id, From: from, To: min(to, max(from, c.log.first-1)), MaxBytes: 4 * c.n.c.Limits.MessageBytes}
	c.readAskedAt = c.n.now
	c.n.out.Reads = append(c.n.out.Reads, c.pendingRead)
}

// logAgrees reports whether the entry with a serial is in this log, or is its
// base, and has an epoch.
func (c *common) logAgrees(s ids.Serial, epoch ids.Epoch) bool {
	return c.log.has(s) && c.log.epochAt(s) == epoch
}

func (c *common) snapshot() Snapshot {
	return Snapshot{Serial: c.applied, Epoch: c.appliedEpoch, Time: c.appliedTime, Clients: c.clients.encode(nil)}
}

// describeLog adds this member's last entry and its commit serial to a
// message.
func (c *common) describeLog(m *Message) {
	m.Prev, m.PrevEpoch = c.log.last, c.log.epochAt(c.log.last)
	m.Commit = max(c.commit, c.log.base)
	m.CommitEpoch = c.log.epochAt(m.Commit)
}
