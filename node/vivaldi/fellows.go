package vivaldi

// A fellow is a peer at the other end of a LAN. It shares this node's way to the
// core of the network, which is the height of both, and neither goes that way to
// reach the other. So its round trip contradicts what the heights say, and where
// a site has many nodes, most of a node's neighbours are fellows. They say the
// same, and it is little about the rest of the world.

const (
	// short is the round trip, in milliseconds, below which a peer is a fellow.
	short = 1
	// fellows is how many neighbours all fellows together weigh at most: enough to
	// hold the nodes of a site together.
	fellows = 4
)

func (p *peer) isFellow() bool { return p.samples > 0 && p.rtt < short }

// fellowShare is the weight of a fellow beside that of another neighbour.
func (n *Node) fellowShare() float64 {
	count := 0
	for _, half := range [2][]int32{n.near, n.far} {
		for _, slot := range half {
			if n.table[slot].isFellow() {
				count++
			}
		}
	}
	return min(1, fellows/float64(max(count, 1)))
}
