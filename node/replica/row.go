package replica

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// restore brings back what an earlier life left on disk.
func (g *group) restore(r Restored) error {
	row := r.Row.Clone()
	g.row = &row
	if err := g.clients.decode(r.Clients); err != nil {
		return err
	}
	g.log.reset(r.Base, r.BaseEpoch, r.BaseTime)
	g.applied, g.appliedEpoch, g.appliedTime = r.Base, r.BaseEpoch, r.BaseTime
	g.unheld = slices.Clone(r.Unheld)
	for _, e := range r.Entries {
		if e.Serial != g.log.last+1 {
			return fault.Errorf(fault.Corrupt, "replica.Restore", "", "slice %d: entry %d follows %d", g.id, e.Serial, g.log.last)
		}
		g.log.append(e)
		if e.Serial > r.ClientsAt && e.Serial <= r.Applied {
			g.clients.apply(e, g.appliedTime)
		}
		if e.Serial <= r.Applied {
			g.hasData = g.hasData || len(e.Data) > 0
			g.applied, g.appliedEpoch, g.appliedTime = e.Serial, e.Epoch, e.Time
			g.n.keep(&g.common, e)
		} else if len(e.Chunks) > 0 {
			g.unheld = append(g.unheld, EntryID{e.Serial, e.Epoch})
		}
	}
	g.durable, g.commit, g.stable, g.sentStable = g.log.last, g.applied, g.applied, g.applied
	g.onAllNormal = g.log.base
	g.incomplete, g.intentRecorded, g.fromDisk = r.Incomplete, r.Intent, true
	if r.Applied > g.log.last && !r.Incomplete {
		// The journal lost its end, with entries that the state has. What follows
		// can no longer be compared with what the others have.
		g.incomplete = true
		g.n.event(&g.common, "the journal ends before the state", g.n.c.Self)
	}
	g.seatMembers(nil)
	g.enlist()
	if g.self < 0 {
		g.forgetCopy()
	}
	g.phase = g.phaseByRow()
	if g.phase >= phaseQuiet {
		g.phase = phaseQuiet
	}
	if row.Active != g.n.c.Self {
		g.doubtPeer(g.n.peer(row.Active))
	}
	g.publishRole()
	return nil
}

// phaseByRow returns the phase that the row gives this node.
func (c *common) phaseByRow() phase {
	if c.self < 0 || c.members[c.self].incarnation != c.n.c.Incarnation {
		return phaseNone
	}
	switch s := c.members[c.self].state; {
	case s.Junior():
		return phaseJunior
	case s != geoconfig.Normal || c.diverged:
		return phaseNone
	case c.incomplete:
		return phaseJunior // in spite of the row: it gets the state before it counts
	case c.row.Active == c.n.c.Self:
		return phaseRecover
	}
	return phaseStandby
}

// setRow replaces the group's row by a newer one. Whatever waits for the older
// epoch ends here.
func (g *group) setRow(row *geoconfig.SliceRow) {
	if row.Epoch <= g.row.Epoch {
		return
	}
	old, was := g.row, g.phase
	mine := g.swap != nil && g.swap.From == old.Epoch && sameRow(&g.swap.After, row)
	g.row = row
	g.rowRecord = g.n.record(&g.common, Record{Kind: RecordRow, Row: row})
	// The same active goes on if no other can have acted in between.
	stays := was >= phaseRecover && row.Active == g.n.c.Self && row.Epoch == old.Epoch+1
	g.doubtOldEpoch(old)
	before := g.members
	g.seatMembers(before)
	g.enlist()
	if g.self < 0 && !g.n.c.Bugs.KeepsRemoved {
		g.forgetCopy()
	}
	g.phase = g.phaseByRow()
	if g.phase == phaseRecover && stays {
		g.phase = was
	} else {
		g.newTerm(old, mine) // looks at the last promise: before waitFrom changes
	}
	g.swap, g.candidate, g.leader = nil, nil, row.Active
	g.leaderBoot, g.verified, g.mismatchDue = 0, false, false
	g.intentRecorded = false
	g.waitFrom = g.n.now
	g.matched, g.ackedTo, g.leaderCommit, g.behindSince = 0, 0, 0, 0
	g.loggedTo = 0
	if old.Active != row.Active {
		g.following.term = 0
	}
	g.publishRole()
	g.markDirty()
}

// forgetCopy makes this copy void because the row does not list this node. The
// driver drops the state (Role.Removed). A log and a table of clients without
// their state would pass for a whole copy once the node is a member again. The
// node then gets the state as a new member does.
func (g *group) forgetCopy() {
	if g.incomplete && !g.transferBegun && g.log.last == 0 {
		return // already void
	}
	g.voidCopy(0, 0, 0)
	g.clients.init(&g.n.c.Limits)
	g.offer, g.inheritedLeases, g.lack, g.commonSerial = offer{}, nil, lack{}, 0
	g.transferBegun, g.transferNeeded = false, false // a transfer under way ends first: it may still write
}

// voidCopy journals that the entries and the state so far count for nothing.
// The log follows a base whose state is not here yet.
func (g *group) voidCopy(base ids.Serial, epoch ids.Epoch, t hlc.Time) {
	g.log.reset(base, epoch, t)
	g.pendingRead.From, g.readBack, g.unheld, g.delayedBytes = 0, nil, nil, 0
	g.resetCount++
	g.incomplete, g.diverged = true, false
	g.durable, g.commit, g.stable, g.sentStable = base, base, base, base
	g.applied, g.onAllNormal = base, base
	g.matched, g.ackedTo, g.loggedTo, g.leaderCommit, g.verified = 0, 0, 0, 0, false
	g.resetRecord = g.n.record(&g.common, Record{Kind: RecordReset, Base: base, BaseEpoch: epoch, BaseTime: t})
}

// newTerm ends the node's old part in the slice and begins the one that the
// new row gives it.
func (g *group) newTerm(old *geoconfig.SliceRow, mine bool) {
	g.refuseWaiting()
	g.handover, g.inheritedLeases = nil, nil
	g.noopSerial, g.wantedQuorum, g.said = 0, 0, 0
	g.leaseEnd, g.quietUntil = 0, 0
	for i := range g.members {
		m := &g.members[i]
		m.beginTerm(g.n.now, g.log.last)
	}
	if g.phase != phaseRecover {
		return
	}
	prior, _ := g.row.Member(old.Active)
	handed := old.Active != g.n.c.Self && prior.State == geoconfig.Normal && g.row.Epoch == old.Epoch+1
	switch {
	case old.Epoch == 0 && g.row.Epoch == 1, mine:
	case g.offer.epoch == old.Epoch && g.offer.epoch > 0 && g.row.Epoch == old.Epoch+1:
		g.inheritedLeases = &Role{Leases: g.offer.leases, LeasesAge: g.offer.at}
	case handed && g.offer.epoch > 0: // and the row changed after this life took the offer
		g.inheritedLeases = &Role{Wait: g.n.c.Lease, LeasesAge: g.n.now}
	case handed:
		g.quietUntil = g.n.now + g.n.c.Wait
	default:
		g.quietUntil = max(g.waitFrom, g.n.c.Start) + g.n.c.Wait
	}
	if g.n.c.Bugs.LeadsAtOnce {
		g.quietUntil = 0
	}
	taken := g.offer.epoch > 0
	g.offer = offer{}
	if g.quietUntil > 0 {
		// The row came about before this life, or the last active is not known. An
		// earlier life may have acted by the row, and its disk may have lost that.
		// This life may have promised another node a lease.
		g.phase = phaseQuiet
		return
	}
	// The old active hands over only once its successor has everything.
	g.mustAdopt = g.row.Hear > 1 || !(handed && taken)
	if g.n.c.Bugs.TakesOverAlone {
		g.mustAdopt = g.row.Hear > 1 || old.Active == g.n.c.Self
	}
	if g.n.c.Bugs.TakeoverHearsOne {
		g.mustAdopt = false
	}
	g.beginRecovery()
}

// beginRecovery makes this node the active, which finds out what the other
// members have.
func (l *leading) beginRecovery() {
	l.phase, l.wasActive, l.graceFrom = phaseRecover, true, l.n.now
	l.belowAllMax, l.said = l.log.last, l.log.last
	l.markDirty()
}

// doubtOldEpoch remembers the peers that may count on promises of the epoch
// that ends.
func (c *common) doubtOldEpoch(old *geoconfig.SliceRow) {
	for _, id := range []ids.Node{old.Active, c.row.Active} {
		if id == "" || id == c.n.c.Self {
			continue
		}
		c.doubtPeer(c.n.peer(id))
	}
	// A junior that became normal has acknowledged a later epoch.
	for _, p := range slices.Clone(c.doubtedPeers) {
		before, _ := old.Member(p.id)
		now, _ := c.row.Member(p.id)
		if before.State.Junior() && now.State == geoconfig.Normal && p.id != c.row.Active {
			c.trustPeer(p)
		}
	}
}

// seatMembers lays out the members of the row. It keeps what is known of those
// that were members before.
func (g *group) seatMembers(before []member) {
	for i := range before {
		if p := before[i].peer; p != nil {
			p.seats = slices.DeleteFunc(p.seats, func(s seat) bool { return s.group == g })
		}
	}
	g.members = make([]member, 0, len(g.row.Members))
	g.self = -1
	for i, rm := range g.row.Members {
		m := member{node: rm.Node, stateSince: g.n.now, progress: progress{progressAt: g.n.now, next: g.log.last + 1}}
		for k := range before {
			if before[k].node == rm.Node {
				m = before[k]
			}
		}
		if m.state != rm.State {
			m.stateSince, m.progressAt = g.n.now, g.n.now
		}
		if m.state != geoconfig.Normal && rm.State == geoconfig.Normal {
			m.leavingBoot = 0
		}
		m.state, m.incarnation = rm.State, rm.Incarnation
		if m.state == geoconfig.Failed {
			m.progress.void()
		}
		m.unconfirm(g.n.now)
		if rm.Node == g.n.c.Self {
			g.self = i
		} else {
			m.peer = g.n.peer(rm.Node)
		}
		g.members = append(g.members, m)
	}
	if g.self < 0 {
		return
	}
	for i := range g.members {
		if p := g.members[i].peer; p != nil {
			p.seats = append(p.seats, seat{g, i})
			p.beaconDue = true
		}
	}
}

// sameRow reports whether two rows are equal in everything but what the store
// adds.
func sameRow(a, b *geoconfig.SliceRow) bool {
	return a.Epoch == b.Epoch && a.Active == b.Active && a.Hear == b.Hear && a.Closed == b.Closed &&
		a.Policy == b.Policy && slices.Equal(a.Members, b.Members)
}

// rejoin ends the transfer of a normal member: it is a standby again, or the
// active that recovers.
func (l *leading) rejoin() {
	if l.phase != phaseJunior || l.self < 0 || l.incomplete || l.transferAsked {
		return
	}
	switch p := l.phaseByRow(); p {
	case phaseStandby:
		l.phase, l.transferNeeded = p, false
		l.publishRole()
	case phaseRecover:
		for i := range l.members {
			m := &l.members[i]
			m.tailHeard, m.tailVoid = false, false
			m.unconfirm(l.n.now)
		}
		l.mustAdopt, l.transferNeeded = true, false
		l.beginRecovery()
		l.publishRole()
	}
}
