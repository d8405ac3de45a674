package api

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
)

const (
	// gatherAge is how old what the nodes said may be before they are asked again.
	gatherAge = time.Second
	// gatherLimit bounds how long a node may take to answer.
	gatherLimit = 2 * time.Second
	// gatherFlight is how many nodes are asked at once.
	gatherFlight = 32
)

// reading is what a node last said. At is when, zero: never. Err says why the last
// question had no answer; value and at are then those of an earlier one.
type reading[T any] struct {
	value T
	at    time.Time
	err   error
}

// gathering asks all nodes one thing and keeps the last answer of each. Callers
// within gatherAge share one round of questions. It is bounded by the roster.
type gathering[T any] struct {
	ask  func(context.Context, ids.Node) (T, error)
	wall func() time.Time

	turn chan struct{} // has the right to ask; guards the writing of the rest

	mu    sync.Mutex // guards the rest; never held across a call
	last  map[ids.Node]reading[T]
	asked time.Time
}

func newGathering[T any](wall func() time.Time, ask func(context.Context, ids.Node) (T, error)) *gathering[T] {
	g := &gathering[T]{ask: ask, wall: wall, turn: make(chan struct{}, 1), last: map[ids.Node]reading[T]{}}
	g.turn <- struct{}{}
	return g
}

// all returns what the nodes said, at most gatherAge ago. Where ctx ends first, it
// returns what was said before.
func (g *gathering[T]) all(ctx context.Context, nodes []ids.Node) map[ids.Node]reading[T] {
	select {
	case <-g.turn:
		defer func() { g.turn <- struct{}{} }()
	case <-ctx.Done():
		return g.copy(nodes)
	}
	g.mu.Lock()
	fresh := !g.asked.IsZero() && g.wall().Sub(g.asked) < gatherAge
	for _, id := range nodes {
		_, known := g.last[id]
		fresh = fresh && known
	}
	g.mu.Unlock()
	if !fresh {
		g.round(context.WithoutCancel(ctx), nodes) // others wait for the answers too
	}
	return g.copy(nodes)
}

// round asks all nodes, some at once, and takes in what they say.
func (g *gathering[T]) round(ctx context.Context, nodes []ids.Node) {
	begun := g.wall()
	var asking sync.WaitGroup
	room := make(chan struct{}, gatherFlight)
	for _, id := range nodes {
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			ctx, cancel := context.WithTimeout(ctx, gatherLimit)
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

func (g *gathering[T]) take(id ids.Node, value T, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := reading[T]{value, g.wall(), nil}
	if err != nil {
		r = g.last[id]
		r.err = err
	}
	g.last[id] = r
}

func (g *gathering[T]) copy(nodes []ids.Node) map[ids.Node]reading[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[ids.Node]reading[T], len(nodes))
	for _, id := range nodes {
		if r, ok := g.last[id]; ok {
			out[id] = r
		}
	}
	return out
}
