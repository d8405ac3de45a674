package replica

import "cartwheel.dev/geo-config/ids"

// Incomplete describes a slice whose state is being copied here, or is void.
type Incomplete struct {
	Base      ids.Serial // the serial that its log follows
	BaseEpoch ids.Epoch
	// Begun: rows are here, and all that they lack of At comes with others. A
	// driver that saves At and makes it durable needs the slice's records up to
	// its serial no more; without Begun it needs none of them.
	Begun bool
	At    Snapshot
}

// Incomplete returns what Snapshot cannot: false where the state is whole.
func (n *Node) Incomplete(s ids.Slice) (Incomplete, bool) {
	g := n.groups[s]
	if g == nil || !g.incomplete {
		return Incomplete{}, false
	}
	out := Incomplete{Base: g.log.base, BaseEpoch: g.log.baseEpoch, Begun: g.transferBegun}
	if g.transferBegun {
		out.At = g.snapshot()
	}
	return out, true
}
