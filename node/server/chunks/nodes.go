package chunks

import (
	"context"
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/tree"
)

// Nodes reads manifest nodes and keeps those met lately, because every range
// of a file goes through its root. It is also what the loop asks about chunks.
type Nodes struct {
	packs *pack.Packs
	limit int

	mu    sync.Mutex // guards below
	nodes map[chunk.Address][]byte
	bytes int
}

// NewNodes returns a cache of at most limit bytes over the packs.
func NewNodes(packs *pack.Packs, limit int) *Nodes {
	return &Nodes{packs: packs, limit: limit, nodes: map[chunk.Address][]byte{}}
}

// Node implements chunk.Reader. The result must not be changed.
func (n *Nodes) Node(a chunk.Address) ([]byte, error) {
	n.mu.Lock()
	data, ok := n.nodes[a]
	n.mu.Unlock()
	if ok {
		return data, nil
	}
	length, ok := n.packs.Length(a)
	if !ok {
		return nil, fault.E(fault.Missing, "chunks.Node", a.String(), "a manifest node is not on this node")
	}
	ranges := [1]pack.Range{{Address: a, Into: make([]byte, length)}}
	if err := n.packs.Read(context.Background(), ranges[:]); err != nil {
		return nil, err
	}
	n.keep(a, ranges[0].Into)
	return ranges[0].Into, nil
}

// keep adds a node; where there is no room, some others go, whichever the map
// gives first.
func (n *Nodes) keep(a chunk.Address, data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.nodes[a]; ok || len(data) > n.limit/4 {
		return
	}
	for other, d := range n.nodes {
		if n.bytes+len(data) <= n.limit {
			break
		}
		delete(n.nodes, other)
		n.bytes -= len(d)
	}
	n.nodes[a] = data
	n.bytes += len(data)
}

// Drop forgets everything, for measurements.
func (n *Nodes) Drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.nodes)
	n.bytes = 0
}

// Has reports whether a chunk is on this node's disk, and pins it.
func (n *Nodes) Has(a chunk.Address) bool {
	one := [1]chunk.Address{a}
	return len(n.packs.Missing(nil, one[:])) == 0
}

// PutInline keeps chunks that the journal covers until the next checkpoint.
func (n *Nodes) PutInline(chunks []tree.Chunk) error {
	addresses, bodies := make([]chunk.Address, len(chunks)), make([][]byte, len(chunks))
	for i := range chunks {
		addresses[i], bodies[i] = chunks[i].Address, chunks[i].Data
	}
	return n.packs.PutLazy(addresses, bodies)
}
