// Package tally counts in the background what holds the space of all slices, in one copy of
// each: docs/design.md, section 5.1. It asks one node for one page at a time, and rests as
// long as the page took, so that a count takes little from other work. One count is under way
// at a time; the last one stays until the next has ended. A Tally is safe for concurrent use.
package tally

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/usage"
	"cartwheel.dev/node/tree"
)

const (
	// MaxSlices bounds the slices of one count.
	MaxSlices = 5000
	// pageLimit bounds how long a node may take for a page.
	pageLimit = 5 * time.Second
	// countLimit bounds a whole count. What was not counted by then has failed.
	countLimit = 2 * time.Hour
	// restLeast and restMost bound the rest behind a page.
	restLeast, restMost = 2 * time.Millisecond, time.Second
	// overloadedMost is how often a page is asked for at a node that has too much to do.
	overloadedMost = 5
	// maxFailures bounds the slices that a count names as failed. Of more, the total tells.
	maxFailures = 100
)

// Asker asks a node for one page of what holds a slice's space: from the beginning, or behind
// Next of the page before. The call ends with its context.
type Asker interface {
	Space(ctx context.Context, node ids.Node, slice ids.Slice, behind []byte) (usage.Told, error)
}

// Slice is one to count, with the nodes that have a copy. They are asked in this order, the
// next one where one fails.
type Slice struct {
	ID     ids.Slice
	Copies []ids.Node
}

// Failure is a slice that no node gave the figures of.
type Failure struct {
	Slice ids.Slice
	Text  string // for people
}

// Count is what a count found, sizes in bytes. One that is under way has found it so far.
type Count struct {
	BeganAt, EndedAt time.Time // EndedAt zero: it is under way
	// Slices is how many there are to count, Done how many were, with or without success.
	Slices, Done int
	// Failed names the first slices that are not in the sums, and FailedTotal counts all.
	Failed      []Failure
	FailedTotal int
	// Objects and Stored are of the current files, Stored without holes and before
	// deduplication.
	Objects, Stored uint64
	tree.Usage
}

// Options are what a Tally is made of. Both are needed.
type Options struct {
	Asker Asker
	Wall  func() time.Time
}

// Tally counts. Close ends it.
type Tally struct {
	o    Options
	life context.Context // ends at Close
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex // guards the rest; never held across a call
	last   *Count     // the newest that has ended; never changed
	now    *Count     // under way; replaced, never changed
	closed bool
}

// New returns a Tally that has counted nothing yet.
func New(o Options) *Tally {
	life, end := context.WithCancel(context.Background())
	return &Tally{o: o, life: life, end: end}
}

// Close ends the count under way, and no other begins. It may be called again.
func (t *Tally) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.work.Wait()
}

// Known returns the newest count that has ended and the one under way; nil: there is none.
// Callers do not change them.
func (t *Tally) Known() (last, now *Count) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.now
}

// Start begins a count, and leaves one that is under way to go on. Errors: TooLarge, Closed.
func (t *Tally) Start(list []Slice) error {
	const op fault.Op = "tally.Start"
	if len(list) > MaxSlices {
		return fault.Errorf(fault.TooLarge, op, "slices", "a count is of %d slices at most, and there are %d: `cartwheel space PATH` counts those of a tree", MaxSlices, len(list))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return fault.E(fault.Closed, op, "", "this node is stopping")
	case t.now == nil:
		t.now = &Count{BeganAt: t.o.Wall(), Slices: len(list)}
		t.work.Go(func() { t.count(list, *t.now) })
	}
	return nil
}

// count counts the slices one after the other. c is the count as it begins.
func (t *Tally) count(list []Slice, c Count) {
	ctx, cancel := context.WithTimeout(t.life, countLimit)
	defer cancel()
	for i := range list {
		part, err := t.slice(ctx, &list[i])
		c.Done++
		if err == nil {
			c.Objects, c.Stored = c.Objects+part.Objects, c.Stored+part.Stored
			c.Add(&part.Usage)
		} else if c.FailedTotal++; len(c.Failed) < maxFailures {
			c.Failed = append(c.Failed[:len(c.Failed):len(c.Failed)], Failure{list[i].ID, fault.Explain(err)})
		}
		sofar := c
		t.mu.Lock()
		t.now = &sofar
		t.mu.Unlock()
	}
	c.EndedAt = t.o.Wall()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = nil
	if t.life.Err() == nil {
		t.last = &c
	}
}

// slice counts one slice at the first of its nodes that tells all of it.
func (t *Tally) slice(ctx context.Context, s *Slice) (usage.Told, error) {
	err := error(fault.E(fault.Unreachable, "tally.slice", "", "no node that answers has a copy"))
	for _, node := range s.Copies {
		var sum usage.Told
		if sum, err = t.replica(ctx, node, s.ID); err == nil {
			return sum, nil
		}
	}
	return usage.Told{}, err
}

// replica adds up the pages of a node's copy.
func (t *Tally) replica(ctx context.Context, node ids.Node, id ids.Slice) (usage.Told, error) {
	var sum usage.Told
	for first := true; first || len(sum.Next) > 0; first = false {
		began := t.o.Wall()
		page, err := t.page(ctx, node, id, sum.Next)
		if err != nil {
			return sum, err
		}
		if first {
			sum.Objects, sum.Stored = page.Objects, page.Stored
		}
		sum.Add(&page.Usage)
		sum.Next = page.Next
		if err := rest(ctx, min(max(t.o.Wall().Sub(began), restLeast), restMost)); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// page asks for one page, again where the node has too much to do.
func (t *Tally) page(ctx context.Context, node ids.Node, id ids.Slice, behind []byte) (usage.Told, error) {
	for try := 1; ; try++ {
		bounded, cancel := context.WithTimeout(ctx, pageLimit)
		page, err := t.o.Asker.Space(bounded, node, id, behind)
		cancel()
		if !fault.Is(err, fault.Overloaded) || try == overloadedMost {
			return page, err
		}
		if err := rest(ctx, restMost); err != nil {
			return page, err
		}
	}
}

// rest waits, unless ctx ends first.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Canceled, "tally.rest", "", ctx.Err())
	}
}
