package replica

import (
	"slices"

	"cartwheel.dev/geo-config/ids"
)

// beacon asks a peer for its promise. A node that makes no progress does not.
func (n *Node) beacon(p *peer) {
	if len(p.seats) == 0 || n.halted() {
		return
	}
	p.sequence++
	b := &p.sent[p.sequence%uint64(len(p.sent))]
	b.sequence, b.at, b.excepted = p.sequence, n.now, b.excepted[:0]
	for _, s := range p.seats {
		if s.group.exceptsBeacon(&s.group.members[s.index]) {
			b.excepted = append(b.excepted, s.group.id)
		}
	}
	slices.Sort(b.excepted)
	m := n.out.send(p.id, Beacon)
	m.Boot, m.To, m.Incarnation, m.Sequence = n.c.Boot, p.boot, n.c.Incarnation, p.sequence
	m.Excepted = slices.Clone(b.excepted)
}

func (n *Node) onBeacon(p *peer, m *Message) {
	n.meet(p, m)
	if n.halted() {
		return
	}
	a := n.out.send(p.id, Answer)
	a.Boot, a.To, a.Incarnation, a.Sequence = n.c.Boot, m.Boot, n.c.Incarnation, m.Sequence
	slices.Sort(m.Excepted)
	for _, g := range p.doubted { // it may count on groups that it has no seat in any more
		a.Excepted = append(a.Excepted, g.id)
	}
	for _, s := range p.seats {
		g := s.group
		if g.doubts(p) {
			continue
		}
		if g.stuck || g.hasDecided() {
			a.Excepted = append(a.Excepted, g.id)
			continue
		}
		if g.row.Active == p.id {
			if _, excepted := slices.BinarySearch(m.Excepted, g.id); !excepted {
				g.noteActiveHeard()
			}
		}
	}
}

func (n *Node) onAnswer(p *peer, m *Message) {
	n.meet(p, m)
	b := &p.sent[m.Sequence%uint64(len(p.sent))]
	if m.To != n.c.Boot || b.sequence != m.Sequence || m.Sequence == 0 {
		return
	}
	from := b.at
	if n.c.Bugs.LeaseFromAnswer {
		from = n.now
	}
	if b.at-p.answeredAt > n.c.Lease || p.answered == 0 {
		p.steadyFrom = b.at
	}
	if m.Sequence > p.answered {
		p.answered, p.answeredAt = m.Sequence, b.at
	}
	slices.Sort(m.Excepted)
	for _, s := range p.seats {
		mb := &s.group.members[s.index]
		if !mb.confirmed || m.Sequence <= mb.confirmedAfter {
			continue
		}
		if _, excepted := slices.BinarySearch(m.Excepted, s.group.id); excepted {
			continue
		}
		mb.promise(b.at)
		s.group.hurryBeacons()
		if _, excepted := slices.BinarySearch(b.excepted, s.group.id); !excepted {
			mb.renew(from)
			s.group.noteRenewal()
		}
	}
}

// meet notes which life of a peer, and which data directory, is speaking. What
// an earlier life confirmed does not bind this one.
func (n *Node) meet(p *peer, m *Message) {
	p.incarnation = m.Incarnation
	if p.boot == m.Boot {
		return
	}
	p.boot = m.Boot
	p.steadyFrom = n.now
	for _, s := range p.seats {
		s.group.members[s.index].unconfirm(n.now)
		s.group.members[s.index].resetCount = 0
		s.group.markDirty()
		if s.group.row.Active == p.id && s.group.leaderBoot != m.Boot {
			s.group.doubtPeer(p) // it may not know that it is the active
		}
	}
}

// exceptsBeacon reports whether a beacon to a member asks for no promise. The
// node is not acting, or acts no more, or its lease has ended and some standby
// would not renew it. A beacon that asked all the same would keep the standbys
// from taking over.
func (l *leading) exceptsBeacon(m *member) bool {
	if l.row.Active != l.n.c.Self {
		return l.wasActive
	}
	if !l.isActing() || l.stuck || l.hasStoppedActing() || !m.confirmed {
		return true
	}
	return l.leaseUntil() <= l.n.now && !l.canRenew()
}

// canRenew reports whether every standby promised within half a lease, or
// would have if asked.
func (l *leading) canRenew() bool {
	for i := range l.members {
		m := &l.members[i]
		if l.isRequired(m) && m.peer != nil && (!m.confirmed || l.n.now-m.willingAt > l.n.c.Lease/2) {
			return false
		}
	}
	return true
}

// hurryBeacons sends beacons at once where the lease waits for nothing else.
func (l *leading) hurryBeacons() {
	if !l.isActing() || l.leaseUntil() > l.n.now || !l.canRenew() {
		return
	}
	for i := range l.members {
		if m := &l.members[i]; m.peer != nil && l.isRequired(m) && m.leaseFrom+l.n.c.Lease <= l.n.now {
			m.peer.beaconDue = true
		}
	}
}

// doubtPeer gives a peer no more promises, until it shows that it has this
// epoch.
func (c *common) doubtPeer(p *peer) {
	if !c.doubts(p) {
		c.doubtedPeers = append(c.doubtedPeers, p)
		p.doubted = append(p.doubted, c)
	}
}

// trustPeer gives a peer promises again.
func (c *common) trustPeer(p *peer) {
	c.doubtedPeers = slices.DeleteFunc(c.doubtedPeers, func(q *peer) bool { return q == p })
	p.doubted = slices.DeleteFunc(p.doubted, func(h *common) bool { return h == c })
}

func (c *common) doubts(p *peer) bool { return slices.Contains(c.doubtedPeers, p) }

// noteSameEpoch notes that a peer has this epoch. Promises to it mean what
// they say.
func (c *common) noteSameEpoch(from ids.Node) {
	if len(c.doubtedPeers) > 0 {
		c.trustPeer(c.n.peer(from))
	}
}

// noteActiveHeard restarts a standby's wait.
func (g *group) noteActiveHeard() {
	g.waitFrom = g.n.now
	if g.candidate != nil && !g.hasDecided() {
		g.candidate = nil
	}
}
