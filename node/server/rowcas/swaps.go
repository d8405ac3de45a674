// Package rowcas runs the compare-and-swaps on slice rows that the replica core
// asks for, each on a goroutine of its own, and finds out how those ended whose
// outcome was not told. It decides nothing: the core does. A Runner may be used
// from any goroutine.
package rowcas

import (
	"context"
	"fmt"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// Patience is how long one call to the store may take.
const Patience = 3 * time.Second

// Runner runs swaps.
type Runner struct {
	Store geoconfig.Store
	Self  ids.Node
	// Boot tells the lives of the process apart: attempts are counted in each.
	Boot uint64
	// Wall is the time for audit records.
	Wall func() time.Time
	// Done hears how a swap ended.
	Done func(s replica.Swap, o replica.Outcome, row *geoconfig.SliceRow)

	wg sync.WaitGroup
	mu sync.Mutex
	// asked holds the keys of swaps that the store was given and whose outcome
	// is not known: these may have been applied.
	asked map[string]bool
}

// Run starts a swap; Done is called once.
func (r *Runner) Run(ctx context.Context, s replica.Swap) {
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		outcome, row := r.swap(ctx, s)
		r.Done(s, outcome, row)
	}()
}

// Wait returns when no swap is under way.
func (r *Runner) Wait() { r.wg.Wait() }

func (r *Runner) swap(ctx context.Context, s replica.Swap) (replica.Outcome, *geoconfig.SliceRow) {
	key := fmt.Sprintf("swap/%s/%x/%d/%d/%d", r.Self, r.Boot, s.Slice, s.From, s.Attempt)
	if !r.ask(ctx, s, key) {
		return replica.Void, nil
	}
	outcome, row := r.apply(ctx, s, key)
	if outcome != replica.Unknown {
		r.mu.Lock()
		delete(r.asked, key)
		r.mu.Unlock()
	}
	return outcome, row
}

// ask reports whether a swap is to be given to the store. One that never was
// is given only while the store answers: a swap that was not sent is void, and
// a standby whose takeover is void goes on promising, where one that waits for
// the outcome would keep the active from its lease until the store is back.
func (r *Runner) ask(ctx context.Context, s replica.Swap, key string) bool {
	r.mu.Lock()
	again := r.asked[key]
	r.mu.Unlock()
	if !again {
		call, cancel := context.WithTimeout(ctx, Patience)
		defer cancel()
		if _, err := r.Store.Read(call, geoconfig.Query{SliceIDs: []ids.Slice{s.Slice}}); err != nil {
			return false
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]bool{}
	}
	r.asked[key] = true
	return true
}

func (r *Runner) apply(ctx context.Context, s replica.Swap, key string) (replica.Outcome, *geoconfig.SliceRow) {
	call, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	rev, err := r.Store.Apply(call, geoconfig.Batch{
		Key:    key,
		Slices: []geoconfig.SliceSwap{{From: s.From, Row: s.After}},
		Audit: []geoconfig.AuditRecord{{AtNS: r.Wall().UnixNano(), Who: string(r.Self), Action: s.Why,
			Subject: fmt.Sprintf("slices/%d", s.Slice), Detail: fmt.Sprintf("epoch %d", s.After.Epoch)}},
	})
	switch fault.KindOf(err) {
	case fault.None:
		return r.won(s, rev)
	case fault.Conflict:
		return r.lost(ctx, s)
	case fault.Invalid, fault.WrongCluster, fault.TooLarge, fault.Expired:
		return replica.Void, nil
	}
	return r.settle(ctx, s, key)
}

func (r *Runner) won(s replica.Swap, rev ids.Revision) (replica.Outcome, *geoconfig.SliceRow) {
	row := s.After.Clone()
	row.Revision = rev
	return replica.Won, &row
}

// lost reads the row that was there instead.
func (r *Runner) lost(ctx context.Context, s replica.Swap) (replica.Outcome, *geoconfig.SliceRow) {
	call, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	rows, err := r.Store.Read(call, geoconfig.Query{SliceIDs: []ids.Slice{s.Slice}})
	if err != nil || len(rows.Slices) != 1 {
		return replica.Void, nil // a conflict changed nothing; the row comes by following
	}
	return replica.Lost, &rows.Slices[0]
}

// settle finds out, for good, whether a swap without an answer was applied.
func (r *Runner) settle(ctx context.Context, s replica.Swap, key string) (replica.Outcome, *geoconfig.SliceRow) {
	call, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	rev, applied, err := r.Store.Settle(call, key)
	switch {
	case err != nil:
		return replica.Unknown, nil
	case applied:
		return r.won(s, rev)
	}
	return replica.Void, nil
}
