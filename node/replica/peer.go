package replica

import (
	"slices"

	"cartwheel.dev/geo-config/ids"
)

// peer is another node that this one shares slices with. Beacons and answers
// go per pair of nodes, whatever the number of slices.
type peer struct {
	id          ids.Node
	boot        uint64 // of its present life, 0 unknown
	incarnation ids.Incarnation
	seats       []seat
	doubted     []*group // those that have it in doubt
	beaconDue   bool
	sequence    uint64 // of the last beacon sent
	sent        [32]sentBeacon
	answered    uint64 // the highest sequence that was answered
	answeredAt  Time   // when that beacon was sent
	steadyFrom  Time   // it has answered without a gap since
}

// seat is the part that a peer has in a group.
type seat struct {
	group *group
	index int // in group.members
}

type sentBeacon struct {
	sequence uint64
	at       Time
	excepted []ids.Slice // ascending
}

func (n *Node) peer(id ids.Node) *peer {
	p := n.peers[id]
	if p == nil {
		p = &peer{id: id, beaconDue: true}
		n.peers[id] = p
		n.lined = append(n.lined, p)
	}
	return p
}

// beacon asks a peer for its promise. A node that makes no progress does not.
func (n *Node) beacon(p *peer) {
	if len(p.seats) == 0 || n.halted() {
		return
	}
	p.sequence++
	b := &p.sent[p.sequence%uint64(len(p.sent))]
	b.sequence, b.at, b.excepted = p.sequence, n.now, b.excepted[:0]
	for _, s := range p.seats {
		if s.group.exceptBeacon(&s.group.members[s.index]) {
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
		if g.stuck || g.decided() {
			a.Excepted = append(a.Excepted, g.id)
			continue
		}
		if g.row.Active == p.id {
			if _, excepted := slices.BinarySearch(m.Excepted, g.id); !excepted {
				g.heard()
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
		if !mb.confirmed || m.Sequence <= mb.confirmedAt {
			continue
		}
		if _, excepted := slices.BinarySearch(m.Excepted, s.group.id); excepted {
			continue
		}
		mb.wouldAt = max(mb.wouldAt, b.at)
		s.group.hurry()
		if _, excepted := slices.BinarySearch(b.excepted, s.group.id); !excepted {
			mb.leaseAt = max(mb.leaseAt, from)
			s.group.renewed()
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
		s.group.members[s.index].resets = 0
		s.group.touch()
		if s.group.row.Active == p.id && s.group.leaderBoot != m.Boot {
			s.group.suspect(p) // it may not know that it is the active
		}
	}
}

// exceptBeacon reports whether this node, as the active, does not ask m's node
// for its promise: it is not (or no longer) acting, or its lease has ended and
// not every standby would give it again. Asking all the same would keep the
// standbys from taking over.
func (g *group) exceptBeacon(m *member) bool {
	if g.row.Active != g.n.c.Self {
		return g.wasActive
	}
	if !g.acting() || g.stuck || g.yielding() || !m.confirmed {
		return true
	}
	return g.until() <= g.n.now && !g.wouldRenew()
}

// wouldRenew reports whether every standby promised, or would have if asked,
// within half a lease.
func (g *group) wouldRenew() bool {
	for i := range g.members {
		m := &g.members[i]
		if g.required(m) && m.peer != nil && (!m.confirmed || g.n.now-m.wouldAt > g.n.c.Lease/2) {
			return false
		}
	}
	return true
}

// hurry beacons at once where that is all a lease waits for.
func (g *group) hurry() {
	if !g.acting() || g.until() > g.n.now || !g.wouldRenew() {
		return
	}
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil && g.required(m) && m.leaseAt+g.n.c.Lease <= g.n.now {
			m.peer.beaconDue = true
		}
	}
}

// suspect gives a peer no more promises, until it shows that it has this epoch.
func (g *group) suspect(p *peer) {
	if !g.doubts(p) {
		g.doubt = append(g.doubt, p)
		p.doubted = append(p.doubted, g)
	}
}

// trust ends that.
func (g *group) trust(p *peer) {
	g.doubt = slices.DeleteFunc(g.doubt, func(q *peer) bool { return q == p })
	p.doubted = slices.DeleteFunc(p.doubted, func(h *group) bool { return h == g })
}

func (g *group) doubts(p *peer) bool { return slices.Contains(g.doubt, p) }

// heard restarts a standby's wait.
func (g *group) heard() {
	g.heardAt = g.n.now
	if g.candidate != nil && !g.decided() {
		g.candidate = nil
	}
}
