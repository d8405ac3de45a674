package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// proposeRow sends a swap to geo-config. It reports false where one is under
// way, was refused just before, or the row is not on disk.
func (c *common) proposeRow(row geoconfig.SliceRow, why string) bool {
	if c.swap != nil || c.n.now < c.swapNotBefore || c.isMute() {
		return false
	}
	row.Epoch = c.row.Epoch + 1
	c.attempts++
	c.swap = &pendingSwap{Swap: Swap{Slice: c.id, From: c.row.Epoch, After: row, Attempt: c.attempts, Why: why}}
	if c.isActing() {
		c.preparePromotion()
	}
	c.tickSwap()
	return true
}

// preparePromotion prepares for a swap that makes members normal. A member
// that becomes normal may take over after its wait, which begins when it
// learns the row. Its promise therefore counts from now on. An active that
// restarts must remember that it may not be alone any more, so the journal
// gets an intent record first.
func (c *common) preparePromotion() {
	for i := range c.members {
		m := &c.members[i]
		if m.peer != nil && m.state != geoconfig.Normal && c.isRequired(m) {
			m.leaseFrom = c.n.now
			c.swap.after = c.n.record(c, Record{Kind: RecordIntent, Row: c.row})
			c.intentRecorded = true
		}
	}
}

func (c *common) tickSwap() {
	s := c.swap
	if s == nil || s.after > c.n.persisted || (s.sent && (s.retryAt == 0 || c.n.now < s.retryAt)) {
		return
	}
	s.sent, s.retryAt = true, 0
	c.n.out.Swaps = append(c.n.out.Swaps, s.Swap)
}

// Enough reports whether a row leaves as many copies as its policy demands.
// That is two normal members where the policy asks for three or more. It is
// also as many as a takeover must hear, since there could be no takeover
// otherwise.
func Enough(row *geoconfig.SliceRow) bool {
	n := 0
	for _, m := range row.Members {
		if m.State == geoconfig.Normal {
			n++
		}
	}
	return n >= row.Hear && (n >= 2 || n == 1 && row.Policy.Level < 3)
}

func setState(row *geoconfig.SliceRow, node ids.Node, s geoconfig.MemberState) {
	for i := range row.Members {
		if row.Members[i].Node == node {
			row.Members[i].State = s
		}
	}
}

// nextRow returns a copy of the row to be changed. It keeps how many members a
// takeover must hear, until all normal members have everything.
func (c *common) nextRow() geoconfig.SliceRow { return c.row.Clone() }

// lowerQuorum lowers Hear in a row to be swapped in, if all its normal members
// have everything that was acknowledged below all. Nothing is acknowledged
// below all while the swap is undecided. An active that is still recovering
// does not know what was acknowledged, and lowers nothing.
func (l *leading) lowerQuorum(row *geoconfig.SliceRow) {
	if l.phase == phaseRecover {
		return
	}
	for i := range l.members {
		m := &l.members[i]
		if rm, _ := row.Member(m.node); rm.State == geoconfig.Normal && m.peer != nil && m.match < max(l.belowAllMax, l.noopSerial) {
			return
		}
	}
	row.Hear = 0
}

// raiseQuorum records how many members a takeover must hear, before anything
// is acknowledged below all.
func (l *leading) raiseQuorum() {
	if l.wantedQuorum <= l.row.Hear {
		l.wantedQuorum = 0
		return
	}
	row := l.nextRow()
	row.Hear = l.wantedQuorum
	l.proposeRow(row, "slice.hear")
}

// Reconfigure asks the active to change the row. None means that the swap is
// under way. Again means one of three things: another swap is under way, the row
// is no longer the one in c.From, or the change cannot be made now.
func (n *Node) Reconfigure(now Time, s ids.Slice, c Change) fault.Kind {
	n.step(now)
	g := n.groups[s]
	if g == nil || g.phase != phaseLead {
		return fault.NotActive
	}
	if g.row.Epoch != c.From || g.swap != nil || g.handover != nil || g.leaseUntil() <= n.now {
		return fault.Again
	}
	row := g.nextRow()
	for _, id := range c.Remove {
		if id == n.c.Self {
			return fault.Invalid // hand over first
		}
		for i, m := range row.Members {
			if m.Node == id {
				row.Members = append(row.Members[:i], row.Members[i+1:]...)
				break
			}
		}
	}
	for _, a := range c.Add {
		a.State = geoconfig.Migrating
		if have, in := row.Member(a.Node); !in {
			row.Members = append(row.Members, a)
		} else if have.State == geoconfig.Failed {
			setMember(&row, a)
		}
	}
	row.Closed = row.Closed || c.Close
	if c.Policy != nil {
		row.Policy = *c.Policy
	}
	if len(c.Remove) > 0 {
		if g.lowerQuorum(&row); !Enough(&row) {
			return fault.Again
		}
	}
	if !g.proposeRow(row, "slice.change") {
		return fault.Again
	}
	g.markDirty()
	return fault.None
}

func setMember(row *geoconfig.SliceRow, m geoconfig.Member) {
	for i := range row.Members {
		if row.Members[i].Node == m.Node {
			row.Members[i] = m
		}
	}
}

// hasDecided reports whether this standby has decided to take over: from
// before it sends the swap until it reads the outcome.
func (c *common) hasDecided() bool { return c.phase == phaseStandby && c.swap != nil }
