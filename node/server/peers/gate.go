// Package peers says which peers may connect to a node, relay over it and be
// heard by it, and keeps the node connected to the others of its cluster. Package
// wire makes the connections and calls this package back; package identity knows
// who the peers are. Everything here is safe for concurrent use.
package peers

import (
	"context"
	"sync/atomic"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

// Loop is what a gate tells the node's loop.
type Loop interface {
	Do(func(*replica.Node, replica.Time)) bool
	Learn([]geoconfig.SliceRow)
}

// Survey is what a gate tells and asks the measuring of distances.
type Survey interface {
	Sample(node ids.Node, rtt time.Duration, at *wire.Coordinate)
	// Relays lists the nodes over which another one may be reached.
	Relays(to string) []string
}

// Parts are the parts of a node that a gate passes events on to. Every field is
// needed, and none changes.
type Parts struct {
	Who    *identity.Registry
	Loop   Loop
	Survey Survey
	// Recheck cuts the connections of peers that may not be connected any more.
	Recheck func()
	// HoldsGeoConfig reports whether a peer is the geo-config server.
	HoldsGeoConfig func(peer string) bool
}

// Gate stands between a node's connections and its parts. The host calls it back
// from the start, when there are no parts yet. While it is shut, it admits no
// peer and drops what it hears. The zero value is shut.
type Gate struct {
	parts atomic.Pointer[Parts] // nil while the gate is shut; set once
}

// Open lets peers in. It is called once.
func (g *Gate) Open(p Parts) { g.parts.Store(&p) }

// IsOpen reports whether Open was called.
func (g *Gate) IsOpen() bool { return g.parts.Load() != nil }

// Admit says for whom a peer acts, once it may do more than say hello.
func (g *Gate) Admit(peer string) (account string, ok bool) {
	p := g.parts.Load()
	if p == nil {
		return "", false
	}
	return p.Who.Admit(peer)
}

// MayRelay lets nodes and clients reach the nodes of the roster over this one,
// and nodes the geo-config server.
func (g *Gate) MayRelay(from, to string) error {
	p := g.parts.Load()
	if p == nil {
		return fault.E(fault.Again, "peers.MayRelay", from, "this node is starting")
	}
	if err := p.Who.Peer(from); err != nil {
		return err
	}
	if p.HoldsGeoConfig(to) {
		return p.Who.Node(from)
	}
	return p.Who.Node(to)
}

// Relays lists the nodes over which another one may be reached.
func (g *Gate) Relays(_ context.Context, to string) []string {
	p := g.parts.Load()
	if p == nil {
		return nil
	}
	return p.Survey.Relays(to)
}

// Recheck cuts the peers that the roster does not name any more.
func (g *Gate) Recheck() {
	if p := g.parts.Load(); p != nil {
		p.Who.Recheck()
		p.Recheck()
	}
}

// Sampled takes in a round trip to a peer. Clients do not count: nothing is sent
// by way of them, and no node knows whether they are honest.
func (g *Gate) Sampled(peer string, rtt time.Duration, at *wire.Coordinate) {
	if p := g.parts.Load(); p != nil && p.Who.IsNode(peer) {
		p.Survey.Sample(ids.Node(peer), rtt, at)
	}
}

// Learn passes newer slice rows on to the core. The caller of Open passes on
// those that came before.
func (g *Gate) Learn(rows []geoconfig.SliceRow) {
	if p := g.parts.Load(); p != nil {
		p.Loop.Learn(rows)
	}
}

// Connected tells the core which nodes' connections come and go, and forgets the
// clients that left.
func (g *Gate) Connected(peer string, class wire.Class, up bool) {
	p := g.parts.Load()
	if class != wire.Operation || p == nil {
		return
	}
	id := ids.Node(peer)
	if !p.Who.IsNode(peer) {
		if !up {
			p.Who.Forget(peer)
		}
		return
	}
	p.Loop.Do(func(core *replica.Node, now replica.Time) {
		if up {
			core.PeerUp(now, id)
		} else {
			core.PeerDown(now, id)
		}
	})
}
