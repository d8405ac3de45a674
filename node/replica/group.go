package replica

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// phase is where a node stands in a group.
type phase uint8

const (
	phaseNone    phase = iota // failed, removed, or its data is not what the row thinks
	phaseStandby              // normal, and another member is active
	phaseJunior               // getting entries or the state until it is equal
	phaseQuiet                // active by the row, but it may have led, or promised another one, just before
	phaseRecover              // active in a new epoch, finding out what the others have
	phaseSync                 // its first entry of the epoch is not committed yet
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

func (l *leading) hasStoppedActing() bool { return l.handover != nil && l.handover.stopped }
