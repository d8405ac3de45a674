package replica

import (
	"math"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// common is what a node keeps of a slice in every role.
type common struct {
	n  *Node
	id ids.Slice
	// row is the newest row seen. rowRecord is its record in the journal: the
	// group sends nothing before that record is on disk.
	row       *geoconfig.SliceRow
	rowRecord Position
	phase     phase
	// dirty: the group is in Node.dirty, once.
	dirty bool
	stuck bool // the driver says so
	// listed: the row lists this node, and the group is in Node.order.
	listed bool
	// members are as in row, in its order. self is this node's index among
	// them, -1 if it is not there; only that member has no peer.
	members []member
	self    int
	// The role and epoch that the driver was told last.
	publishedRole  RoleKind
	publishedEpoch ids.Epoch

	promises
	history
	reading
	comparison
	copying
	rowChange
	succession
	holding holding // of a standby
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

// isActing reports whether this node is the active and may use its powers once
// it has its lease.
func (c *common) isActing() bool {
	return c.phase == phaseRecover || c.phase == phaseSync || c.phase == phaseLead
}

// isMute reports whether the newest epoch is not on disk yet.
func (c *common) isMute() bool { return c.rowRecord > c.n.persisted }

func (c *common) markDirty() {
	if !c.dirty {
		c.dirty = true
		c.n.dirty = append(c.n.dirty, c)
	}
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

func (c *common) newMessage(to ids.Node, kind MessageKind) *Message {
	m := c.n.out.send(to, kind)
	m.Slice, m.Epoch, m.Boot = c.id, c.row.Epoch, c.n.c.Boot
	return m
}

// sendRow sends the row. What is not on disk yet is not told.
func (c *common) sendRow(to ids.Node, kind MessageKind) {
	if c.isMute() {
		return
	}
	m := c.newMessage(to, kind)
	m.Row = c.row
}

// isReachable reports whether a member would promise just now.
func (c *common) isReachable(m *member) bool {
	return m.confirmed && !m.hasOtherDisk() && c.n.now-m.willingAt <= c.n.c.Lease/2
}

// isSteady reports whether a peer has answered without a gap for so long that
// others may wait for it again.
func (c *common) isSteady(p *peer) bool { return c.n.now-p.steadyFrom >= c.n.c.Lease/2 }

// inLastStep reports whether a junior's acknowledgement is required. What ends
// it must not wait for anything, not for a swap either.
func (c *common) inLastStep(m *member) bool {
	return m.lastStep.begun && c.n.now-m.lastStep.begunAt <= c.n.c.Lease/2
}
