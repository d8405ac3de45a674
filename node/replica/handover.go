package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// HandOver begins a planned hand-over to a standby. The active orders nothing
// more, and what it ordered drains. Then RoleYielding asks the server to
// revoke the object leases and to call Yield. If the hand-over fails,
// RoleLeading comes again.
func (n *Node) HandOver(now Time, s ids.Slice, to ids.Node) fault.Kind {
	n.step(now)
	g := n.groups[s]
	if g == nil || g.phase != phaseLead {
		return fault.NotActive
	}
	if g.handover != nil || g.swap != nil {
		return fault.Again
	}
	m := g.memberOf(to)
	if m == nil || m.peer == nil || m.state != geoconfig.Normal || !g.isReachable(m) || m.isLeaving() {
		return fault.Invalid
	}
	if g.isCoherent() && (m.strays || m.match-m.whole > mostDrained) {
		return fault.Again // its chunks come first, while this node goes on
	}
	g.attempts++
	g.handover = &handover{to: to, number: ids.Serial(g.attempts), since: n.now}
	g.markDirty()
	return fault.None
}

// Yield goes on with a hand-over. The leases are those that no client has
// given back, in the server's own encoding, for the successor.
func (n *Node) Yield(now Time, s ids.Slice, leases []byte) {
	n.step(now)
	if g := n.groups[s]; g != nil && g.handover != nil && g.handover.revokeAsked {
		g.handover.stopped, g.handover.leases = true, leases
		g.markDirty()
	}
}

// advanceHandover takes the next step of a hand-over: drain, revoke, offer,
// swap.
func (l *leading) advanceHandover() {
	y := l.handover
	if y == nil || l.swap != nil {
		return
	}
	m := l.memberOf(y.to)
	if m == nil || m.state != geoconfig.Normal || l.n.now-y.since > 2*l.n.c.Lease {
		l.cancelHandover()
		return
	}
	switch {
	case !y.revokeAsked:
		if l.commit == l.log.last && m.match == l.log.last && m.whole == m.match && !m.strays {
			y.revokeAsked = true
			l.publishRole()
		}
	case !y.stopped:
	case !y.offerTaken:
		if y.sentAt == 0 || l.n.now-y.sentAt >= l.n.c.ResendAfter {
			y.sentAt = l.n.now
			o := l.newMessage(y.to, Offer)
			o.Serial, o.Leases = y.number, y.leases
		}
	default:
		row := l.nextRow()
		row.Active = y.to
		l.proposeRow(row, "slice.handover")
	}
}

// cancelHandover ends a hand-over that failed.
func (l *leading) cancelHandover() {
	if l.handover != nil {
		l.handover = nil
		l.publishRole()
	}
}

func (f *following) onOffer(from ids.Node, m *Message) {
	if from != f.row.Active || f.phase != phaseStandby || f.isMute() {
		return
	}
	if f.offer.epoch != m.Epoch || f.offer.number < m.Serial {
		f.offer = offer{epoch: m.Epoch, number: m.Serial, leases: m.Leases, at: f.n.now}
	}
	f.newMessage(from, Taken).Serial = f.offer.number
}

func (l *leading) onTaken(from ids.Node, m *Message) {
	if y := l.handover; y != nil && y.stopped && y.to == from && y.number == m.Serial {
		y.offerTaken = true
		l.markDirty()
	}
}
