package replica

import geoconfig "cartwheel.dev/geo-config"

// Leave says that this node is about to stop. The actives of the slices in
// which it is a standby take it out at once, so that nobody waits for its
// acknowledgements and promises; what it leads is handed over by HandOver. It
// returns in how many slices it can still be taken out by an active that it
// hears: the driver goes on as usual, and asks again, until there is none or it
// has no more time. There is no way back but another life.
func (n *Node) Leave(now Time) int {
	n.step(now)
	n.leaving = true
	left := 0
	for _, g := range n.order {
		if g.phase != phaseStandby {
			continue
		}
		g.announceLeaving()
		row := g.nextRow()
		setState(&row, n.c.Self, geoconfig.Failed)
		if enough(&row) && n.now-g.waitFrom <= n.c.Lease/2 {
			left++
		}
	}
	return left
}

// announceLeaving makes the next acknowledgement due, which says it.
func (f *following) announceLeaving() {
	if f.leaveSentAt == 0 || f.n.now-f.leaveSentAt >= f.n.c.ResendAfter {
		f.leaveSentAt = f.n.now
		f.ackDue = true
		f.markDirty()
	}
}
