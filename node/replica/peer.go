package replica

import (
	"cartwheel.dev/geo-config/ids"
)

// peer is another node that this one shares slices with. Beacons and answers
// go per pair of nodes, whatever the number of slices.
type peer struct {
	id          ids.Node
	boot        uint64 // of its present life, 0 unknown
	incarnation ids.Incarnation
	seats       []seat
	doubted     []*common // those that have it in doubt
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
