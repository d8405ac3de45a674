// Package gather asks the nodes of a cluster one thing each, and keeps what each said
// last. A node that does not answer holds nobody up for long: what it said before is
// there, with its age, and it is asked on meanwhile. Its memory and its calls are
// bounded by the roster.
package gather

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

const (
	// Limit bounds how long a node may take to answer.
	Limit = 2 * time.Second
	// maxAge is how old what a node said may be before it is asked again.
	maxAge = time.Second
	// patience bounds how long a caller waits for answers, which come to the next
	// caller then.
	patience = 500 * time.Millisecond
	// silence is for how long nobody waits for a node that gave no answer. It is
	// asked nevertheless.
	silence = 10 * time.Second
	// flight is how many nodes are asked at once; the others wait.
	flight = 32
)

// Reading is what a node last said. At is when, zero: never. Err says why the last
// question had no answer; Value and At are then those of an earlier one.
type Reading[T any] struct {
	Value T
	At    time.Time
	Err   error
}

// Nodes asks nodes one thing and keeps the last answer of each. A node is asked by
// one question at a time, whoever wants to know. It is safe for concurrent use.
type Nodes[T any] struct {
	ask  func(context.Context, ids.Node) (T, error)
	wall func() time.Time
	room chan struct{} // has room for the questions under way

	life   context.Context // ends at Close
	end    context.CancelFunc
	asking sync.WaitGroup

	mu     sync.Mutex // guards the rest; never held across a call
	states map[ids.Node]*state[T]
	closed bool
}

// state is what is known of one node.
type state[T any] struct {
	last  Reading[T]
	asked time.Time     // when the last question that has ended began
	under chan struct{} // closed when the question under way ends; nil: there is none
}

// New returns Nodes that ask by a function, which returns once its context ends.
func New[T any](wall func() time.Time, ask func(context.Context, ids.Node) (T, error)) *Nodes[T] {
	life, end := context.WithCancel(context.Background())
	return &Nodes[T]{ask: ask, wall: wall, room: make(chan struct{}, flight), life: life, end: end, states: map[ids.Node]*state[T]{}}
}

// Close ends the questions under way. Nothing is asked any more.
func (g *Nodes[T]) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.end()
	g.asking.Wait()
}

// All returns what the nodes of the roster said, without those that said nothing yet.
// It asks those whose word is old, and waits a little for them. It forgets nodes that
// are not of the roster any more.
func (g *Nodes[T]) All(ctx context.Context, roster []ids.Node) map[ids.Node]Reading[T] {
	listed := make(map[ids.Node]bool, len(roster))
	for _, id := range roster {
		listed[id] = true
	}
	g.mu.Lock()
	for id, s := range g.states {
		if !listed[id] && s.under == nil {
			delete(g.states, id)
		}
	}
	g.mu.Unlock()
	g.refresh(ctx, roster)
	return g.Known(roster)
}

// One is All of one node. It forgets nothing.
func (g *Nodes[T]) One(ctx context.Context, id ids.Node) (Reading[T], bool) {
	g.refresh(ctx, []ids.Node{id})
	r, ok := g.Known([]ids.Node{id})[id]
	return r, ok
}

// Known returns what nodes said, without asking any.
func (g *Nodes[T]) Known(nodes []ids.Node) map[ids.Node]Reading[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[ids.Node]Reading[T], len(nodes))
	for _, id := range nodes {
		if s, ok := g.states[id]; ok && !s.asked.IsZero() {
			out[id] = s.last
		}
	}
	return out
}

// refresh asks the nodes whose word is old, and waits for answers.
func (g *Nodes[T]) refresh(ctx context.Context, nodes []ids.Node) {
	g.mu.Lock()
	var waits []chan struct{}
	for _, id := range nodes {
		if under := g.beginLocked(id); under != nil {
			waits = append(waits, under)
		}
	}
	g.mu.Unlock()
	if len(waits) == 0 {
		return
	}
	patient := time.NewTimer(patience)
	defer patient.Stop()
	for _, under := range waits {
		select {
		case <-under:
		case <-patient.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// beginLocked asks a node whose word is old, where no question is under way. It
// returns what is closed at the answer; nil: there is nothing to wait for. g.mu is
// held.
func (g *Nodes[T]) beginLocked(id ids.Node) chan struct{} {
	now := g.wall()
	s := g.states[id]
	if s == nil {
		s = &state[T]{}
		g.states[id] = s
	}
	if s.under == nil {
		if g.closed || now.Sub(s.asked) < maxAge {
			return nil
		}
		s.under = make(chan struct{})
		g.asking.Go(func() { g.question(id, s, now) })
	}
	if s.last.Err != nil && now.Sub(s.asked) < silence {
		return nil
	}
	return s.under
}

// question asks one node, and takes in what it says.
func (g *Nodes[T]) question(id ids.Node, s *state[T], begun time.Time) {
	var value T
	var err error
	select {
	case g.room <- struct{}{}:
		ctx, cancel := context.WithTimeout(g.life, Limit)
		value, err = g.ask(ctx, id)
		cancel()
		<-g.room
	case <-g.life.Done():
		err = fault.Wrap(fault.Closed, "gather.question", string(id), g.life.Err())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.last.Err = err; err == nil {
		s.last = Reading[T]{Value: value, At: g.wall()}
	}
	s.asked = begun
	close(s.under)
	s.under = nil
}
