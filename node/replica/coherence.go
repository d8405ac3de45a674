package replica

import "cartwheel.dev/geo-config/ids"

// In a slice with a time to coherence (Policy.Coherence) the entries are as synchronous
// as ever, and their chunks may follow: a member acknowledges an entry that is on its
// disk, and says apart up to which serial it has the chunks too. The active waits for
// the chunks only where a member's lag would pass the time, or maxLag.

// maxLag bounds the entries whose chunks a member may lack before the active waits
// for them. It bounds what a member fetches at once.
const maxLag = 1024

// mostDrained is how many entries' chunks a successor may lack when a hand-over begins,
// which orders nothing more until they are there.
const mostDrained = 64

// isCoherent reports whether chunks may follow their entries.
func (c *common) isCoherent() bool { return c.row.Policy.Coherence > 0 }

// markLag moves a member's mark on once it has the chunks up to it.
func (l *leading) markLag(m *member) {
	if m.whole >= m.markSerial {
		m.markSerial, m.markedAt = l.log.last, l.n.now
	}
}

// isOverdue reports whether the chunks that a member lacks have to come before more
// is acknowledged. Half of the time for each of the two marks keeps to all of it.
func (l *leading) isOverdue(m *member) bool {
	late := m.whole < m.markSerial && l.n.now-m.markedAt > l.row.Policy.Coherence/2
	return late || m.match-m.whole > maxLag
}

// isStuck reports whether a member that the active waits for has brought the chunks of
// no entry for the time, or lacks for so long what this active has from before its
// term. The chunks of one entry may travel for long on a slow line.
func (l *leading) isStuck(m *member) bool {
	if !l.isCoherent() {
		return false
	}
	patience := max(l.row.Policy.Coherence, l.n.c.Lease)
	if m.strays && len(l.unheld) == 0 && l.n.now-max(m.straysAt, l.graceFrom) > patience {
		return true
	}
	since := max(m.wholeAt, m.markedAt+l.row.Policy.Coherence/2, l.graceFrom)
	return l.isOverdue(m) && l.n.now-since > patience
}

// reach is up to which serial a member's acknowledgement counts. A junior in its last
// step has to have everything.
func (l *leading) reach(m *member) ids.Serial {
	if l.isCoherent() && (l.inLastStep(m) || l.isOverdue(m)) {
		return m.whole
	}
	return m.match
}

// ownReach is reach of the active itself. It has the chunks of what it ordered; those
// that it lacks are of entries that an earlier active ordered.
func (l *leading) ownReach() ids.Serial {
	if l.isCoherent() {
		return l.loggedSerial()
	}
	return l.heldSerial()
}

// hasAll reports whether a member has the chunks of everything committed, or lacks
// only such as this active lacks too.
func (l *leading) hasAll(m *member) bool {
	return m.whole >= l.commit && (!m.strays || len(l.unheld) > 0)
}

// wholeSerial returns the serial up to which this member has the entries of the
// active's term with their chunks.
func (f *following) wholeSerial() ids.Serial {
	s := f.loggedSerial()
	for _, u := range f.unheld {
		if u.Epoch >= f.term {
			return min(s, u.Serial-1)
		}
	}
	return s
}

// hasStrays reports whether this member lacks chunks of entries that an earlier
// active ordered.
func (f *following) hasStrays() bool { return len(f.unheld) > 0 && f.unheld[0].Epoch < f.term }

// Lacks notes entries of a copied state whose chunks the source lacks as well.
func (n *Node) Lacks(s ids.Slice, entries []EntryID) {
	if g := n.groups[s]; g != nil {
		g.noteLacking(entries)
	}
}

// noteLacking merges entries into unheld, which stays ascending. An entry that is
// there already stays as it is.
func (c *common) noteLacking(entries []EntryID) {
	merged := make([]EntryID, 0, len(c.unheld)+len(entries))
	have := c.unheld
	for _, e := range entries {
		for len(have) > 0 && have[0].Serial < e.Serial {
			merged, have = append(merged, have[0]), have[1:]
		}
		if len(have) == 0 || have[0].Serial != e.Serial {
			merged = append(merged, e)
		}
	}
	c.unheld = append(merged, have...)
	c.markDirty()
}

// Lacking lists the entries of a slice whose chunks are not all on this disk,
// ascending.
func (n *Node) Lacking(s ids.Slice) []EntryID {
	g := n.groups[s]
	if g == nil {
		return nil
	}
	return append([]EntryID(nil), g.unheld...)
}
