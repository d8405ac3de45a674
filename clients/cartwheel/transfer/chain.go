package transfer

import (
	"slices"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
)

const (
	// chainLife is how long chunks pass along the same chain once none did. A full
	// line makes its members look far, and a chain that turned round while chunks
	// travel would have two connections share one line.
	chainLife = 10 * time.Second
	// maxChains bounds the slices whose chains are kept; with more, all are chosen
	// anew.
	maxChains = 1024
)

// chains keeps the chain of each slice that chunks travel to. It may be used from
// many goroutines.
type chains struct {
	clock boottime.Func

	mu   sync.Mutex // guards below
	kept map[ids.Slice]*kept
}

// kept is one chain, for a row of this epoch while its first node is the nearest.
type kept struct {
	epoch ids.Epoch
	first ids.Node
	nodes []ids.Node
	until time.Duration // boot time
}

// of returns the chain of a slice's normal members that begins with first. Where
// none is kept, order puts the nodes behind the first one into their order.
func (c *chains) of(row geoconfig.SliceRow, first ids.Node, order func([]ids.Node)) []ids.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	if k := c.kept[row.ID]; k != nil && k.epoch == row.Epoch && k.first == first && now < k.until {
		k.until = now + chainLife
		return k.nodes
	}
	nodes := row.Normals()
	if i := slices.Index(nodes, first); i > 0 {
		nodes[0], nodes[i] = nodes[i], nodes[0]
	}
	order(nodes)
	if c.kept == nil || len(c.kept) >= maxChains {
		c.kept = map[ids.Slice]*kept{}
	}
	c.kept[row.ID] = &kept{epoch: row.Epoch, first: first, nodes: nodes, until: now + chainLife}
	return nodes
}

// forget has the next chain of a slice chosen anew: chunks got stuck on this one.
func (c *chains) forget(slice ids.Slice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, slice)
}

// chain is the normal members of a slice in the order in which chunks pass from
// one to the next, the one nearest to this client first. In a slice with a time to
// coherence it is the active alone, and the others fetch the chunks. The caller does not
// change it.
func (s *Service) chain(row geoconfig.SliceRow) []ids.Node {
	if row.Policy.Coherence > 0 {
		return []ids.Node{row.Active}
	}
	return s.chains.of(row, s.cluster.Closest(row.Active, row.Normals()), s.cluster.Chain)
}
