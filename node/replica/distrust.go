package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Hold has a standby apply the entries up to a serial, and no later ones for a lease or
// until Release. It returns the serial of the last one that is applied, which may be higher.
// False: this node is no standby of the slice, and nothing is held.
func (n *Node) Hold(now Time, s ids.Slice, upTo ids.Serial) (ids.Serial, bool) {
	n.step(now)
	g := n.groups[s]
	if g == nil || g.phase != phaseStandby {
		return 0, false
	}
	g.holding = holding{upTo: upTo, until: now + n.c.Lease}
	g.applyUpTo(g.commit)
	g.markDirty()
	return g.applied, true
}

// Release ends a Hold.
func (n *Node) Release(now Time, s ids.Slice) {
	n.step(now)
	if g := n.groups[s]; g != nil {
		g.release()
	}
}

// Distrust has a standby's copy count for nothing, because it differs from that of other
// members. The active takes this node out then, and a transfer replaces the state. It
// reports whether it did: it does not where this node is no standby, or where the slice
// would have too few normal members left to act.
func (n *Node) Distrust(now Time, s ids.Slice) bool {
	n.step(now)
	g := n.groups[s]
	if g == nil || g.phase != phaseStandby || g.hasDecided() || g.incomplete {
		return false
	}
	row := g.nextRow()
	setState(&row, n.c.Self, geoconfig.Failed)
	if !Enough(&row) {
		return false
	}
	g.holding = holding{}
	g.noteDivergence()
	g.markDirty()
	return true
}
