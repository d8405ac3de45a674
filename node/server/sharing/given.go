package sharing

import (
	"slices"
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/chunk"
)

const (
	// givenLife is for how long a member remembers at least whom it gave a chunk.
	givenLife = 10 * time.Minute
	// givenChunks bounds the chunks of one generation. A full one turns before its
	// time: then chunks are given that others have.
	givenChunks = 1 << 14
	// mostHolders bounds the nodes that are named for one chunk.
	mostHolders = 3
)

// Given remembers at a member of slices which nodes were lately given which chunk.
// It is kept in memory and forgets: a node that it does not name is given the
// bytes. A Given is safe for concurrent use.
type Given struct {
	clock boottime.Func

	mu         sync.Mutex // guards below
	turned     time.Duration
	young, old map[chunk.Address][]ids.Node
}

// NewGiven returns a Given that remembers nothing.
func NewGiven(clock boottime.Func) *Given {
	return &Given{clock: clock, turned: clock(), young: map[chunk.Address][]ids.Node{}}
}

// Give returns the nodes that have a chunk, but for the asker and those to avoid.
// Where there are none the asker is to be given the bytes, and is remembered.
func (g *Given) Give(a chunk.Address, asker ids.Node, avoid []string) []ids.Node {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turnLocked()
	known := g.young[a]
	if known == nil {
		known = g.old[a]
	}
	var out, left []ids.Node
	for _, n := range known {
		if n == asker {
			continue
		}
		left = append(left, n)
		if !slices.Contains(avoid, string(n)) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		g.young[a] = append([]ids.Node{asker}, left[:min(len(left), mostHolders-1)]...)
	}
	return out
}

// turnLocked forgets what is older than its life. Called with mu held.
func (g *Given) turnLocked() {
	now := g.clock()
	if late := now - g.turned; late >= givenLife || len(g.young) >= givenChunks {
		g.old, g.young, g.turned = g.young, map[chunk.Address][]ids.Node{}, now
		if late >= 2*givenLife {
			g.old = nil
		}
	}
}
