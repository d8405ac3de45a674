package historytest

import (
	"context"
	"math/rand/v2"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
)

// Workload is the work of a run, its history and the judge, for clusters that
// another package runs. Its methods may be used from any goroutine, once
// Prepare has returned.
type Workload struct {
	log    *recorder
	actors []*actor
	limit  time.Duration
	allow  func(error) bool
}

// Allow names errors that programs may be told. It comes before Add.
func (w *Workload) Allow(allow func(error) bool) { w.allow = allow }

// NewWorkload makes a workload without clients. The clock is that of the
// history; limit is the longest that a call may take.
func NewWorkload(clock func() time.Duration, limit time.Duration) *Workload {
	return &Workload{log: newRecorder(func() int64 { return int64(clock()) }), limit: limit}
}

// Add adds one that works on a client, one operation at a time. Several may
// work on one client.
func (w *Workload) Add(fs mount.FileSystem, chance *rand.Rand) (index int) {
	w.actors = append(w.actors, &actor{id: len(w.actors), fs: fs, log: w.log, rand: chance, limit: w.limit, allow: w.allow})
	return len(w.actors) - 1
}

// Prepare makes what the run works on; one directory at a site of its own.
func (w *Workload) Prepare(ctx context.Context, site ids.Site) error {
	if err := prepare(ctx, w.actors, site); err != nil {
		return err
	}
	for _, a := range w.actors {
		if err := a.meet(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Meet looks up what the run works on, for one that was added late.
func (w *Workload) Meet(ctx context.Context, index int) error { return w.actors[index].meet(ctx) }

// Lose says that a client's process has crashed: whatever its actor is told from
// now on, outcomes are open.
func (w *Workload) Lose(index int) { w.actors[index].lost.Store(true) }

// Restart gives an actor the client of a new process. No operation of it may be
// under way. It stays away from files with a write of the earlier process that
// may come yet.
func (w *Workload) Restart(ctx context.Context, index int, fs mount.FileSystem) error {
	a := w.actors[index]
	a.fs, a.known = fs, nil
	avoid := a.avoid
	err := a.meet(ctx)
	a.avoid = avoid
	if err == nil {
		a.lost.Store(false)
	}
	return err
}

// Once runs one operation of the mix.
func (w *Workload) Once(ctx context.Context, index int) { w.actors[index].one(ctx) }

// Everything reads all there is, as ordinary operations.
func (w *Workload) Everything(ctx context.Context, index int) { w.actors[index].everything(ctx) }

// Rewrite writes every register and a record of the log, as ordinary
// operations.
func (w *Workload) Rewrite(ctx context.Context, index int) {
	a := w.actors[index]
	clear(a.avoid)
	for _, f := range registers() {
		for i := range f.ranges {
			a.write(ctx, f, i)
		}
	}
	a.append(ctx)
}

// Judge tells how many operations there were, what is wrong with them, and
// which objects could not be judged.
func (w *Workload) Judge() (operations int, wrong, open []string) {
	wrong = append(wrong, w.log.problems...)
	bad, open := check(w.log.events)
	wrong = append(append(wrong, bad...), durable(w.log.events)...)
	return len(w.log.events), wrong, open
}

// Lines tells the history, in the order in which operations began.
func (w *Workload) Lines() []string {
	out := make([]string, 0, len(w.log.events))
	for _, e := range w.log.events {
		out = append(out, e.String())
	}
	return out
}
