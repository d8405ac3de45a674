package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// yield is a planned hand-over under way at the old active.
type yield struct {
	to      ids.Node
	number  ids.Serial // tells attempts apart
	since   Time
	asked   bool // the server revokes object leases
	stopped bool // it has; this node does not act any more
	leases  []byte
	sentAt  Time
	taken   bool
}

// offer is what an old active passed to its successor.
type offer struct {
	epoch  ids.Epoch
	number ids.Serial
	leases []byte
	at     Time
}

// HandOver begins a planned hand-over to a standby: no more is proposed, what
// was proposed drains, then RoleYielding asks the server to revoke the object
// leases and to call Yield. If it cannot be completed, RoleLeading comes again.
func (n *Node) HandOver(now Time, s ids.Slice, to ids.Node) fault.Kind {
	n.step(now)
	g := n.groups[s]
	if g == nil || g.phase != phaseLead {
		return fault.NotActive
	}
	if g.yield != nil || g.swap != nil {
		return fault.Again
	}
	m := g.memberOf(to)
	if m == nil || m.peer == nil || m.state != geoconfig.Normal || !g.reachable(m) || m.leaving() {
		return fault.Invalid
	}
	g.attempts++
	g.yield = &yield{to: to, number: ids.Serial(g.attempts), since: n.now}
	g.touch()
	return fault.None
}

// Yield goes on with a hand-over; leases are those not yet answered, for the
// successor, in the server's own encoding.
func (n *Node) Yield(now Time, s ids.Slice, leases []byte) {
	n.step(now)
	if g := n.groups[s]; g != nil && g.yield != nil && g.yield.asked {
		g.yield.stopped, g.yield.leases = true, leases
		g.touch()
	}
}

// progressYield moves a hand-over on: drained, revoked, offered, swapped.
func (g *group) progressYield() {
	y := g.yield
	if y == nil || g.swap != nil {
		return
	}
	m := g.memberOf(y.to)
	if m == nil || m.state != geoconfig.Normal || g.n.now-y.since > 2*g.n.c.Lease {
		g.wantYieldBack()
		return
	}
	switch {
	case !y.asked:
		if g.commit == g.log.last && m.match == g.log.last {
			y.asked = true
			g.publish()
		}
	case !y.stopped:
	case !y.taken:
		if y.sentAt == 0 || g.n.now-y.sentAt >= g.n.c.ResendAfter {
			y.sentAt = g.n.now
			o := g.message(y.to, Offer)
			o.Serial, o.Leases = y.number, y.leases
		}
	default:
		row := g.nextRow()
		row.Active = y.to
		g.propose(row, "slice.handover")
	}
}

// wantYieldBack ends a hand-over that did not come about.
func (g *group) wantYieldBack() {
	if g.yield != nil {
		g.yield = nil
		g.publish()
	}
}

func (g *group) onOffer(from ids.Node, m *Message) {
	if from != g.row.Active || g.phase != phaseStandby || g.mute() {
		return
	}
	if g.offer.epoch != m.Epoch || g.offer.number < m.Serial {
		g.offer = offer{epoch: m.Epoch, number: m.Serial, leases: m.Leases, at: g.n.now}
	}
	g.message(from, Taken).Serial = g.offer.number
}

func (g *group) onTaken(from ids.Node, m *Message) {
	if y := g.yield; y != nil && y.stopped && y.to == from && y.number == m.Serial {
		y.taken = true
		g.touch()
	}
}
