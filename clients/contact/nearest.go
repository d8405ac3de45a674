package contact

import (
	"cmp"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
)

// Nearest returns all nodes, the nearest first: those at the client's own site,
// then by measured round trip; the ones never measured come last, in the order
// in which they became known.
func (c *Cluster) Nearest() []geoconfig.NodeID {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.order)
	c.sortLocked(out)
	return out
}

// Sort orders nodes by nearness, in place.
func (c *Cluster) Sort(nodes []geoconfig.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sortLocked(nodes)
}

func (c *Cluster) sortLocked(nodes []geoconfig.NodeID) {
	slices.SortStableFunc(nodes, func(a, b geoconfig.NodeID) int { return cmp.Compare(c.distanceLocked(a), c.distanceLocked(b)) })
}

func (c *Cluster) distanceLocked(id geoconfig.NodeID) time.Duration {
	const unknown = time.Hour
	n, ok := c.nodes[id]
	switch {
	case !ok:
		return 2 * unknown
	case c.opt.Site != "" && n.row.Site == c.opt.Site:
		return 0
	case n.rtt == 0:
		return unknown
	}
	return n.rtt
}

// Node returns what is known of a node.
func (c *Cluster) Node(id geoconfig.NodeID) (geoconfig.Node, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.nodes[id]
	if !ok {
		return geoconfig.Node{}, false
	}
	return n.row, true
}

// Nodes returns all that is known, in the order in which it became known.
func (c *Cluster) Nodes() []geoconfig.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []geoconfig.Node
	for _, id := range c.order {
		out = append(out, c.nodes[id].row)
	}
	return out
}

// Sites returns the sites that the cluster has.
func (c *Cluster) Sites() []geoconfig.Site {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sites)
}

// RTT returns the smoothed round trip to a node, 0 if it was never measured.
func (c *Cluster) RTT(id geoconfig.NodeID) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.nodes[id]; ok {
		return n.rtt
	}
	return 0
}
