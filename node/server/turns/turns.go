// Package turns has copies of slices made at a node one at a time, in the order of
// package repair. A copy that is made gives way to a slice with fewer copies left. It
// copies nothing itself, and keeps nothing over a restart.
package turns

import (
	"context"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/repair"
)

// After a copy failed, its slice comes after the others and displaces none for
// leastRest. Each further failure doubles that, up to mostRest: otherwise one slice
// that cannot be copied would keep all others from it.
const (
	leastRest = time.Minute
	mostRest  = time.Hour
)

// opTurn is the operation in the errors of copies that give way.
const opTurn fault.Op = "turns.Take"

// Queue has one copy made here at a time, the most urgent first. It is safe for
// concurrent use. Claims are made anew at each choice, since a slice may lose more
// copies while it waits.
type Queue struct {
	claim func(ids.Slice) repair.Claim
	clock func() time.Duration

	mu      sync.Mutex // guards below
	running *turn
	waiting []*turn
	failed  map[ids.Slice]failure
}

// New returns an empty queue. claim says how urgent the copy of a slice is; it is
// called while the queue is locked, and must not call it back.
func New(claim func(ids.Slice) repair.Claim, clock func() time.Duration) *Queue {
	return &Queue{claim: claim, clock: clock}
}

// failure says how long a slice waits after its last copies failed, one after the other.
type failure struct {
	rest  time.Duration // how long the slice rests
	until time.Duration
}

// turn is one copy's place.
type turn struct {
	slice   ids.Slice
	granted chan struct{} // closed once it is this copy's turn
	give    context.CancelCauseFunc
}

// displaced is why a copy ended: another slice has fewer copies left.
func displaced(by ids.Slice) error {
	return fault.Errorf(fault.Again, opTurn, "", "slice %d has fewer copies left, and goes first", by)
}

// Take waits for the turn of a slice. Its context ends with ctx, and when a slice with
// fewer copies must not wait; then the copy begins anew later. end lets the next one go,
// and must be called.
func (q *Queue) Take(ctx context.Context, id ids.Slice) (mine context.Context, end func(), err error) {
	mine, give := context.WithCancelCause(ctx)
	place := &turn{slice: id, granted: make(chan struct{}), give: give}
	end = func() { q.end(place) }
	q.mu.Lock()
	q.waiting = append(q.waiting, place)
	q.nextLocked()
	q.mu.Unlock()
	select {
	case <-place.granted:
		return mine, end, nil
	case <-ctx.Done():
		end()
		return nil, func() {}, ctx.Err()
	}
}

// nextLocked lets the most urgent copy go, or has the one that is made give way to it.
// Called with mu held.
func (q *Queue) nextLocked() {
	if len(q.waiting) == 0 {
		return
	}
	first := q.inOrderLocked()[0]
	if q.running == nil {
		q.waiting = slices.DeleteFunc(q.waiting, func(w *turn) bool { return w == first })
		q.running = first
		close(first.granted)
		return
	}
	if !q.restsLocked(first.slice) && repair.Displaces(q.claim(first.slice), q.claim(q.running.slice)) {
		q.running.give(displaced(first.slice)) // its end lets the other one go
	}
}

// inOrderLocked lists those who wait, the next one first. Called with mu held.
func (q *Queue) inOrderLocked() []*turn {
	claims, rests := map[ids.Slice]repair.Claim{}, map[ids.Slice]bool{}
	for _, w := range q.waiting {
		claims[w.slice], rests[w.slice] = q.claim(w.slice), q.restsLocked(w.slice)
	}
	out := slices.Clone(q.waiting)
	slices.SortStableFunc(out, func(a, b *turn) int {
		if rests[a.slice] != rests[b.slice] {
			if rests[b.slice] {
				return -1
			}
			return 1
		}
		return repair.Compare(claims[a.slice], claims[b.slice])
	})
	return out
}

// restsLocked reports whether a slice rests after a failure. Called with mu held.
func (q *Queue) restsLocked(id ids.Slice) bool { return q.clock() < q.failed[id].until }

// Note takes in how the copy of a slice ended that was not displaced.
func (q *Queue) Note(id ids.Slice, failed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !failed {
		delete(q.failed, id)
		return
	}
	if q.failed == nil {
		q.failed = map[ids.Slice]failure{}
	}
	rest := min(max(2*q.failed[id].rest, leastRest), mostRest)
	q.failed[id] = failure{rest, q.clock() + rest}
}

// end gives a place back, whether its turn had come or not.
func (q *Queue) end(place *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	place.give(nil)
	if q.running == place {
		q.running = nil
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(w *turn) bool { return w == place })
	if q.running == nil {
		q.nextLocked()
	}
}

// Look has the copy that is made give way where another one must not wait for it by now.
func (q *Queue) Look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running != nil {
		q.nextLocked()
	}
}

// List returns the slices that have or wait for a turn, the one that has it first and
// the others in their order.
func (q *Queue) List() (claims []repair.Claim, running bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running != nil {
		claims = append(claims, q.claim(q.running.slice))
	}
	for _, w := range q.inOrderLocked() {
		claims = append(claims, q.claim(w.slice))
	}
	return claims, q.running != nil
}
