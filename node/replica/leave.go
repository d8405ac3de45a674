package replica

import geoconfig "cartwheel.dev/geo-config"

// Leave says that this node is about to stop. The actives of the slices in
// which it is a standby take it out at once, so that no operation waits for
// it; HandOver passes on what it leads. Leave returns in how many slices an
// active that this node hears can still take it out. The driver goes on as
// usual and calls Leave again, until the number is 0 or its time is up. Only
// another life of the node comes back.
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
		if Enough(&row) && n.now-g.waitFrom <= n.c.Lease/2 {
			left++
		}
	}
	return left
}

// announceLeaving makes an acknowledgement due, which says that this node is
// leaving.
func (f *following) announceLeaving() {
	if f.leaveSentAt == 0 || f.n.now-f.leaveSentAt >= f.n.c.ResendAfter {
		f.leaveSentAt = f.n.now
		f.ackDue = true
		f.markDirty()
	}
}
