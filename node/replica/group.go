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

func (g *group) markDirty() {
	if !g.dirty {
		g.dirty = true
		g.n.dirty = append(g.n.dirty, g)
	}
}

// isMute reports whether the newest epoch is not on disk yet.
func (g *group) isMute() bool { return g.rowRecord > g.n.persisted }

// isActing reports whether this node is the active and may use its powers once
// it has its lease.
func (g *group) isActing() bool {
	return g.phase == phaseRecover || g.phase == phaseSync || g.phase == phaseLead
}

func (g *group) hasStoppedActing() bool { return g.handover != nil && g.handover.stopped }

// isRequired reports whether a member's acknowledgement and promise are needed:
// it is normal in the row, or in the one that a swap may have put there.
func (g *group) isRequired(m *member) bool {
	if m.state == geoconfig.Normal {
		return true
	}
	if g.swap == nil {
		return false
	}
	after, _ := g.swap.After.Member(m.node)
	return after.State == geoconfig.Normal
}

// leaseUntil returns the end of the lease: every standby's promise counts from the
// sending of the beacon that it answered.
func (g *group) leaseUntil() Time {
	if !g.isActing() || g.self < 0 {
		return math.MinInt64
	}
	until := g.n.now + g.n.c.Lease
	for i := range g.members {
		m := &g.members[i]
		if m.peer != nil && g.isRequired(m) {
			if m.leaseFrom == 0 {
				return math.MinInt64
			}
			until = min(until, m.leaseFrom+g.n.c.Lease)
		}
	}
	return until
}

// noteRenewal is called when a promise came in.
func (g *group) noteRenewal() {
	until := g.leaseUntil()
	if !g.isActing() || until <= g.leaseEnd {
		return
	}
	g.leaseEnd = until
	if g.phase == phaseLead {
		g.n.out.Leases = append(g.n.out.Leases, Lease{g.id, g.row.Epoch, until})
	}
	g.advanceCommit()
}

func (g *group) memberOf(p ids.Node) *member {
	for i := range g.members {
		if g.members[i].node == p {
			return &g.members[i]
		}
	}
	return nil
}

func (g *group) normals() int {
	k := 0
	for i := range g.members {
		if g.members[i].state == geoconfig.Normal {
			k++
		}
	}
	return k
}

func (g *group) role() RoleKind {
	switch g.phase {
	case phaseStandby:
		return RoleStandby
	case phaseJunior:
		return RoleJunior
	case phaseQuiet, phaseRecover, phaseSync:
		return RoleActive
	case phaseLead:
		if g.handover != nil && g.handover.revokeAsked {
			return RoleYielding
		}
		return RoleLeading
	}
	return RoleNone
}

// publishRole tells the driver of a changed role or row.
func (g *group) publishRole() {
	k := g.role()
	if k == g.publishedRole && g.row.Epoch == g.publishedEpoch {
		return
	}
	r := Role{Slice: g.id, Kind: k, Row: g.row, Removed: g.self < 0}
	if k == RoleLeading && g.inheritedLeases != nil {
		r.Leases, r.LeasesAge, r.Wait = g.inheritedLeases.Leases, g.n.now-g.inheritedLeases.LeasesAge, g.inheritedLeases.Wait
		g.inheritedLeases = nil
	}
	g.publishedRole, g.publishedEpoch = k, g.row.Epoch
	g.n.out.Roles = append(g.n.out.Roles, r)
	if k == RoleLeading {
		g.n.out.Leases = append(g.n.out.Leases, Lease{g.id, g.row.Epoch, g.leaseUntil()})
	}
}

// refuseWaiting answers everybody who waits: the outcome is unknown.
func (g *group) refuseWaiting() {
	for _, w := range append(g.waiting, g.retries...) {
		g.n.out.Replies = append(g.n.out.Replies, Reply{Slice: g.id, Token: w.token, Kind: fault.TimedOut})
	}
	g.waiting, g.retries = nil, nil
	g.inflight = nil
	g.uncommitted = 0
}

// noteHeld notes that an entry's chunks are here.
func (g *group) noteHeld(e EntryID) {
	g.unheld = slices.DeleteFunc(g.unheld, func(u EntryID) bool { return u == e })
}

// heldSerial returns the serial up to which this node has entries and their chunks
// on its disk.
func (g *group) heldSerial() ids.Serial {
	s := g.durable
	if g.n.c.Bugs.AckBeforeSync {
		s = g.log.last
	}
	if len(g.unheld) > 0 {
		s = min(s, g.unheld[0].Serial-1)
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
func (g *group) storeEntry(e *Entry) {
	g.log.append(e)
	g.n.record(g, Record{Kind: RecordEntry, Entry: e})
	g.markDirty()
}

// cutLog removes the uncommitted entries from a serial on.
func (g *group) cutLog(from ids.Serial) {
	for s := from; g.incomplete && s <= g.log.last; s++ {
		if e := g.log.get(s); e != nil {
			g.delayedBytes -= e.cost()
		}
	}
	g.log.cut(from)
	g.durable = min(g.durable, from-1)
	for len(g.unheld) > 0 && g.unheld[len(g.unheld)-1].Serial >= from {
		g.unheld = g.unheld[:len(g.unheld)-1]
	}
}

// applyUpTo hands over committed entries up to a serial, reading back those that
// are not in memory.
func (g *group) applyUpTo(upTo ids.Serial) {
	if g.incomplete {
		if !g.transferBegun {
			return
		}
		upTo = min(upTo, g.applyLimit)
	}
	if g.applied >= upTo {
		return
	}
	out := g.n.out
	start := len(out.entries)
	for g.applied < upTo {
		e := g.findEntry(g.applied + 1)
		if e == nil {
			g.requestRead(g.applied+1, upTo)
			break
		}
		g.clients.apply(e, g.appliedTime)
		g.applied, g.appliedEpoch, g.appliedTime = e.Serial, e.Epoch, e.Time
		g.hasData = g.hasData || len(e.Data) > 0
		if g.incomplete {
			g.delayedBytes -= e.cost()
		}
		g.n.keep(g, e)
		out.entries = append(out.entries, e)
	}
	if k := len(out.entries); k > start {
		out.Applied = append(out.Applied, Apply{Slice: g.id, Entries: out.entries[start:k:k]})
	}
}

func (n *Node) keep(g *group, e *Entry) {
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
