package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/hlc"
)

// Incomplete describes a slice whose state is being copied here, or is void:
// the serial that its log follows, and the entries that wait for the state. A
// driver that saves them needs the records of the slice no more.
type Incomplete struct {
	Base      geoconfig.Serial
	BaseEpoch geoconfig.Epoch
	BaseTime  hlc.Time
	Entries   []*Entry // Base+1 and on, as journaled
}

// Incomplete returns what Snapshot cannot: false where the state is whole.
func (n *Node) Incomplete(s geoconfig.SliceID) (Incomplete, bool) {
	g := n.groups[s]
	if g == nil || !g.incomplete {
		return Incomplete{}, false
	}
	out := Incomplete{Base: g.log.base, BaseEpoch: g.log.baseEpoch, BaseTime: g.log.baseTime}
	for at := g.log.base + 1; at <= g.log.last; at++ {
		out.Entries = append(out.Entries, g.log.get(at))
	}
	return out, true
}
