package intents

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"cartwheel.dev/geo-config/ids"
)

const (
	// maxLanes bounds the lanes under way at once; the work of further ones
	// waits for the next sweep, which begins with another slice.
	maxLanes = 64
	// laneFlight is how many pieces of work a lane has under way at once.
	laneFlight = 4
)

// duty is a kind of work that a sweep finds.
type duty uint8

const (
	dutyResume   duty = iota // open intents that this slice coordinates
	dutyPrepared             // intents of others that hold locks here
	dutyMarks                // what creates over two slices left
)

// lane names work that shares its fate: what one slice has to settle with the
// same other slices. Where one of these does not answer, only this lane waits.
type lane struct {
	duty   duty
	slice  ids.Slice
	others string
}

// laneOf names the lane of work with these slices.
func laneOf(d duty, id ids.Slice, others ...ids.Slice) lane {
	others = slices.Clone(others)
	slices.Sort(others)
	return lane{duty: d, slice: id, others: fmt.Sprint(others)}
}

// lanes runs the work of sweeps, each lane on a goroutine of its own.
type lanes struct {
	mu   sync.Mutex // guards below
	busy map[lane]bool
}

// begin takes a lane, unless it is busy or there are too many.
func (l *lanes) begin(key lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[key] || len(l.busy) >= maxLanes {
		return false
	}
	l.busy[key] = true
	return true
}

func (l *lanes) end(key lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, key)
}

// settle divides work into lanes, in its order, and starts each of them. It does
// not wait.
func settle[T any](r *Runner, work []T, lanes func(*T) lane, do func(context.Context, *T) bool) {
	var order []lane
	by := map[lane][]*T{}
	for n := range work {
		key := lanes(&work[n])
		if by[key] == nil {
			order = append(order, key)
		}
		by[key] = append(by[key], &work[n])
	}
	for _, key := range order {
		if !r.lanes.begin(key) {
			continue
		}
		first := int(r.o.Random() % uint64(len(by[key]))) // what fails every time must not hide the rest
		r.o.Go(func(ctx context.Context) {
			defer r.lanes.end(key)
			along(ctx, slices.Concat(by[key][first:], by[key][:first]), do)
		})
	}
}

// along does a lane's work until a piece of it fails: the next sweep finds the
// rest.
func along[T any](ctx context.Context, work []*T, do func(context.Context, *T) bool) {
	var taken atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for range min(laneFlight, len(work)) {
		all.Go(func() {
			for ctx.Err() == nil && !failed.Load() {
				n := int(taken.Add(1)) - 1
				if n >= len(work) {
					return
				}
				if !do(ctx, work[n]) {
					failed.Store(true)
				}
			}
		})
	}
	all.Wait()
}
