package replica

import (
	"math"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// phase is where a node stands in a group.
type phase uint8

const (
	phaseNone    phase = iota // failed, removed, or its data is not what the row thinks
	phaseStandby              // normal, somebody else is active
	phaseJunior
	phaseQuiet   // active by the row, but it may have led, or promised another one, just before
	phaseRecover // active in a new epoch, finding out what the others have
	phaseSync    // its first entry of the epoch is not committed yet
	phaseLead
)

// group is this node's part in one slice: what every role needs, and what each
// role keeps for itself. A part's methods reach its own fields and those of
// common alone; what needs two parts is a method of group.
type group struct {
	common
	leading
	following
	takeover
}

func (n *Node) newGroup(id ids.Slice) *group {
	g := &group{common: common{n: n, id: id, row: &geoconfig.SliceRow{ID: id}, self: -1}}
	g.leading.common, g.following.common, g.takeover.common = &g.common, &g.common, &g.common
	g.waitFrom, g.graceFrom = n.now, n.now
	g.clients.init(&n.c.Limits)
	g.log.reset(0, 0, 0)
	n.groups[id] = g
	return g
}

// enlist has the group ticked as long as the row lists this node. Of a slice
// that it was taken out of only the row stays, for good: an older one must not
// pass for news, and a peer that sends late is told.
func (g *group) enlist() {
	n, was := g.n, g.listed
	g.listed = g.self >= 0
	switch {
	case g.listed && !was:
		n.order = append(n.order, g)
	case was && !g.listed:
		n.order = slices.DeleteFunc(n.order, func(o *group) bool { return o == g })
	}
}

func (c *common) markDirty() {
	if !c.dirty {
		c.dirty = true
		c.n.dirty = append(c.n.dirty, c)
	}
}

// isMute reports whether the newest epoch is not on disk yet.
func (c *common) isMute() bool { return c.rowRecord > c.n.persisted }

// isActing reports whether this node is the active and may use its powers once
// it has its lease.
func (c *common) isActing() bool {
	return c.phase == phaseRecover || c.phase == phaseSync || c.phase == phaseLead
}

func (l *leading) hasStoppedActing() bool { return l.handover != nil && l.handover.stopped }

// isRequired reports whether a member's acknowledgement and promise are needed:
// it is normal in the row, or in the one that a swap may have put there.
func (c *common) isRequired(m *member) bool {
	if m.state == geoconfig.Normal {
		return true
	}
	if c.swap == nil {
		return false
	}
	after, _ := c.swap.After.Member(m.node)
	return after.State == geoconfig.Normal
}

// leaseUntil returns the end of the lease: every standby's promise counts from the
// sending of the beacon that it answered.
func (c *common) leaseUntil() Time {
	if !c.isActing() || c.self < 0 {
		return math.MinInt64
	}
	until := c.n.now + c.n.c.Lease
	for i := range c.members {
		m := &c.members[i]
		if m.peer != nil && c.isRequired(m) {
			if m.leaseFrom == 0 {
				return math.MinInt64
			}
			until = min(until, m.leaseFrom+c.n.c.Lease)
		}
	}
	return until
}

// noteRenewal is called when a promise came in.
func (l *leading) noteRenewal() {
	until := l.leaseUntil()
	if !l.isActing() || until <= l.leaseEnd {
		return
	}
	l.leaseEnd = until
	if l.phase == phaseLead {
		l.n.out.Leases = append(l.n.out.Leases, Lease{l.id, l.row.Epoch, until})
	}
	l.advanceCommit()
}

func (c *common) memberOf(p ids.Node) *member {
	for i := range c.members {
		if c.members[i].node == p {
			return &c.members[i]
		}
	}
	return nil
}

func (c *common) normals() int {
	k := 0
	for i := range c.members {
		if c.members[i].state == geoconfig.Normal {
			k++
		}
	}
	return k
}

func (c *common) role() RoleKind {
	switch c.phase {
	case phaseStandby:
		return RoleStandby
	case phaseJunior:
		return RoleJunior
	case phaseQuiet, phaseRecover, phaseSync:
		return RoleActive
	case phaseLead:
		if c.handover != nil && c.handover.revokeAsked {
			return RoleYielding
		}
		return RoleLeading
	}
	return RoleNone
}

// publishRole tells the driver of a changed role or row.
func (c *common) publishRole() {
	k := c.role()
	if k == c.publishedRole && c.row.Epoch == c.publishedEpoch {
		return
	}
	r := Role{Slice: c.id, Kind: k, Row: c.row, Removed: c.self < 0}
	if k == RoleLeading && c.inheritedLeases != nil {
		r.Leases, r.LeasesAge, r.Wait = c.inheritedLeases.Leases, c.n.now-c.inheritedLeases.LeasesAge, c.inheritedLeases.Wait
		c.inheritedLeases = nil
	}
	c.publishedRole, c.publishedEpoch = k, c.row.Epoch
	c.n.out.Roles = append(c.n.out.Roles, r)
	if k == RoleLeading {
		c.n.out.Leases = append(c.n.out.Leases, Lease{c.id, c.row.Epoch, c.leaseUntil()})
	}
}

// refuseWaiting answers everybody who waits: the outcome is unknown.
func (l *leading) refuseWaiting() {
	for _, w := range append(l.waiting, l.retries...) {
		l.n.out.Replies = append(l.n.out.Replies, Reply{Slice: l.id, Token: w.token, Kind: fault.TimedOut})
	}
	l.waiting, l.retries = nil, nil
	l.inflight = nil
	l.uncommitted = 0
}

// noteHeld notes that an entry's chunks are here.
func (c *common) noteHeld(e EntryID) {
	c.unheld = slices.DeleteFunc(c.unheld, func(u EntryID) bool { return u == e })
}

// heldSerial returns the serial up to which this node has entries and their chunks
// on its disk.
func (c *common) heldSerial() ids.Serial {
	s := c.durable
	if c.n.c.Bugs.AckBeforeSync {
		s = c.log.last
	}
	if len(c.unheld) > 0 {
		s = min(s, c.unheld[0].Serial-1)
	}
	return s
}

// noteDurable is called when more entries are on this disk.
func (g *group) noteDurable() {
	if g.isActing() {
		g.advanceCommit()
		return
	}
	g.followActive()
}

// storeEntry appends an entry to the log and the journal; what was there from its
// serial on must have been cut.
func (c *common) storeEntry(e *Entry) {
	c.log.append(e)
	c.n.record(c, Record{Kind: RecordEntry, Entry: e})
	c.markDirty()
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

// applyUpTo hands over committed entries up to a serial, reading back those that
// are not in memory.
func (c *common) applyUpTo(upTo ids.Serial) {
	if c.incomplete {
		if !c.transferBegun {
			return
		}
		upTo = min(upTo, c.applyLimit)
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

func (n *Node) keep(g *common, e *Entry) {
	c := e.cost()
	n.kept.push(keptEntry{g, e.Serial, c})
	n.keptBytes += c
}

// tick makes time pass for one group.
func (g *group) tick() {
	switch g.phase {
	case phaseStandby:
		g.tickStandby()
	case phaseJunior:
		g.tickJunior()
	case phaseQuiet:
		g.tickQuiet()
	case phaseRecover, phaseSync, phaseLead:
		g.tickActive()
	}
	g.tickSwap()
	if g.pendingRead.From != 0 && g.n.now-g.readAskedAt > g.n.c.Lease {
		g.pendingRead.From = 0 // the driver forgot; whoever needs it asks again
	}
}

// flush turns what is queued into messages.
func (g *group) flush() {
	if g.isMute() {
		return // Persisted touches the group again
	}
	if g.isActing() {
		g.advancePhase()
		for i := range g.members {
			g.feedMember(&g.members[i])
		}
		return
	}
	g.acknowledge()
}
