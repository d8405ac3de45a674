// Package gather asks the nodes of a cluster one thing each, and keeps what each said
// last. Its memory and its calls are bounded by the roster.
package gather

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
)

const (
	// maxAge is how old what the nodes said may be before they are asked again.
	maxAge = time.Second
	// Limit bounds how long a node may take to answer.
	Limit = 2 * time.Second
	// flight is how many nodes are asked at once.
	flight = 32
)

// Reading is what a node last said. At is when, zero: never. Err says why the last
// question had no answer; Value and At are then those of an earlier one.
type Reading[T any] struct {
	Value T
	At    time.Time
	Err   error
}

// Nodes asks all nodes one thing and keeps the last answer of each. Callers
// within a second share one round of questions. It is bounded by the roster.
type Nodes[T any] struct {
	ask  func(context.Context, ids.Node) (T, error)
	wall func() time.Time

	turn chan struct{} // has the right to ask; guards the writing of the rest

	mu    sync.Mutex // guards the rest; never held across a call
	last  map[ids.Node]Reading[T]
	asked time.Time
}

// New returns Nodes that ask by a function, which returns once its context ends.
func New[T any](wall func() time.Time, ask func(context.Context, ids.Node) (T, error)) *Nodes[T] {
	g := &Nodes[T]{ask: ask, wall: wall, turn: make(chan struct{}, 1), last: map[ids.Node]Reading[T]{}}
	g.turn <- struct{}{}
	return g
}

// All returns what the nodes said, at most a second ago. Where ctx ends first, it
// returns what was said before.
func (g *Nodes[T]) All(ctx context.Context, nodes []ids.Node) map[ids.Node]Reading[T] {
	select {
	case <-g.turn:
		defer func() { g.turn <- struct{}{} }()
	case <-ctx.Done():
		return g.Known(nodes)
	}
	g.mu.Lock()
	fresh := !g.asked.IsZero() && g.wall().Sub(g.asked) < maxAge
	for _, id := range nodes {
		_, known := g.last[id]
		fresh = fresh && known
	}
	g.mu.Unlock()
	if !fresh {
		g.round(context.WithoutCancel(ctx), nodes) // others wait for the answers too
	}
	return g.Known(nodes)
}

// round asks all nodes, some at once, and takes in what they say.
func (g *Nodes[T]) round(ctx context.Context, nodes []ids.Node) {
	begun := g.wall()
	var asking sync.WaitGroup
	room := make(chan struct{}, flight)
	for _, id := range nodes {
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			ctx, cancel := context.WithTimeout(ctx, Limit)
			defer cancel()
			value, err := g.ask(ctx, id)
			g.take(id, value, err)
		})
	}
	asking.Wait()
	listed := map[ids.Node]bool{}
	for _, id := range nodes {
		listed[id] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = begun
	for id := range g.last {
		if !listed[id] {
			delete(g.last, id)
		}
	}
}

func (g *Nodes[T]) take(id ids.Node, value T, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := Reading[T]{value, g.wall(), nil}
	if err != nil {
		r = g.last[id]
		r.Err = err
	}
	g.last[id] = r
}

// Known returns what nodes said, without asking any.
func (g *Nodes[T]) Known(nodes []ids.Node) map[ids.Node]Reading[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[ids.Node]Reading[T], len(nodes))
	for _, id := range nodes {
		if r, ok := g.last[id]; ok {
			out[id] = r
		}
	}
	return out
}
