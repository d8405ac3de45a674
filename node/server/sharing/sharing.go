// Package sharing has the nodes of a site share what the site's clients read below
// the cue .Hotspot. A node brings a chunk for its site once, from a member of the
// slice or from a node to which the member gave it, and keeps it for a while; a
// member remembers for a while to whom it gave what. All of it is in memory, bounded,
// and may be lost at any time: whoever finds nothing asks the slice's members. The
// package checks that bytes are what their address says, and no permissions. A Cache
// and a Given are safe for concurrent use.
package sharing

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/wire"
)

// Caller reaches other nodes.
type Caller interface {
	Call(ctx context.Context, peer string, class wire.Class, m wire.Method, request proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error)
}

// Roster knows the cluster's rows.
type Roster interface {
	Slice(id ids.Slice) (geoconfig.SliceRow, bool)
	Node(id ids.Node) (geoconfig.Node, bool)
	Sites() []geoconfig.Site
}

// Options set up a Cache. None may be missing.
type Options struct {
	Self ids.Node
	Site ids.Site
	// Bytes bounds what is kept. 0: nothing is brought.
	Bytes  int64
	Roster Roster
	Caller Caller
	// Patient returns a context for one question to a node, as wire.Patient does.
	Patient func(ctx context.Context, peer string, stall, most time.Duration) (context.Context, context.CancelFunc)
	// Distance is the round trip to a node, as far as it is known.
	Distance func(to ids.Node) (time.Duration, bool)
	Clock    boottime.Func
	// Go runs a function on a goroutine that ends with the node.
	Go func(func(context.Context))
}

// Cache is what a node brought for its site's clients.
type Cache struct {
	o      Options
	kept   *kept
	turns  chan struct{} // holds one for each flight that asks
	counts counts

	mu      sync.Mutex // guards below; that of kept comes after it
	flights map[chunk.Address]*flight
	shunned map[ids.Node]time.Duration // until when a node is left out
}

type counts struct{ hits, misses, served, fetched atomic.Uint64 }

// Counts are a Cache's figures since its start.
type Counts struct {
	// Hits are chunks that were here when they were asked for, Misses others.
	Hits, Misses uint64
	// ServedBytes went to the site's clients and to other nodes, FetchedBytes came.
	ServedBytes, FetchedBytes uint64
	// KeptBytes are held now.
	KeptBytes int64
}

// New returns an empty Cache.
func New(o Options) *Cache {
	return &Cache{o: o, kept: newKept(o.Bytes), turns: make(chan struct{}, flightsAtOnce),
		flights: map[chunk.Address]*flight{}, shunned: map[ids.Node]time.Duration{}}
}

// Counts returns the figures.
func (c *Cache) Counts() Counts {
	return Counts{Hits: c.counts.hits.Load(), Misses: c.counts.misses.Load(), ServedBytes: c.counts.served.Load(),
		FetchedBytes: c.counts.fetched.Load(), KeptBytes: c.kept.held()}
}

// Drop forgets all chunks.
func (c *Cache) Drop() { c.kept.drop() }

// Served counts bytes that went to somebody.
func (c *Cache) Served(n int) { c.counts.served.Add(uint64(n)) }

// Bring returns chunks of a slice, in the order of their addresses, which it fetches
// where they are not kept. It blocks until they are there or ctx ends, which ends
// no flight. The bytes must not be changed. Errors: Overloaded, Missing, Corrupt
// and those of the nodes.
func (c *Cache) Bring(ctx context.Context, slice ids.Slice, addresses []chunk.Address) ([][]byte, error) {
	const op fault.Op = "sharing.Bring"
	if c.o.Bytes == 0 {
		return nil, fault.E(fault.NotSupported, op, string(c.o.Self), "this node keeps nothing for its site: its option neighbour_cache_bytes is 0")
	}
	out := make([][]byte, len(addresses))
	flights := make([]*flight, len(addresses))
	for i, a := range addresses {
		if out[i] = c.kept.get(a); out[i] != nil {
			c.counts.hits.Add(1)
			continue
		}
		c.counts.misses.Add(1)
		var err error
		if flights[i], err = c.join(slice, a); err != nil {
			return nil, err
		}
	}
	for i, f := range flights {
		if f == nil {
			continue
		}
		data, err := f.await(ctx)
		if err != nil {
			return nil, fault.Wrap(fault.Missing, op, addresses[i].String(), err)
		}
		out[i] = data
	}
	return out, nil
}

// Held returns a chunk that is kept, or that a member of its slice is just sending;
// nil where there is none. It never asks a node, so nobody waits in a circle.
func (c *Cache) Held(ctx context.Context, a chunk.Address) []byte {
	if data := c.kept.get(a); data != nil {
		c.counts.hits.Add(1)
		return data
	}
	c.counts.misses.Add(1)
	c.mu.Lock()
	f := c.flights[a]
	c.mu.Unlock()
	if f == nil {
		return c.kept.get(a) // it came meanwhile
	}
	select {
	case <-f.done:
		return f.data
	case <-f.turned:
	case <-ctx.Done():
	}
	return nil
}
