package route

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// watched runs one attempt. If it takes long, the other members are asked for
// a newer row, and one that names another active ends the attempt.
func (r *Router) watched(ctx context.Context, row geoconfig.SliceRow, attempt Attempt) (*pb.Refusal, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &waiting{active: row.Active, cancel: cancel}
	doubts, over := false, false // guarded by the mutex
	r.watchers.Add(1)
	timer := time.AfterFunc(suspicion, func() {
		defer r.watchers.Done()
		r.mu.Lock()
		defer r.mu.Unlock()
		if !over {
			doubts = true
			r.waitLocked(row.ID, w)
			r.doubtLocked(row.ID)
		}
	})
	refusal, err := attempt(ctx, row.Active, row.Epoch)
	if timer.Stop() {
		r.watchers.Done()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if over = true; doubts {
		r.leaveLocked(row.ID, w)
		r.trustLocked(row.ID)
	}
	return refusal, err
}

// doubtLocked notes that one more attempt waits long. r.mu is held, and the
// caller holds one of the watchers.
func (r *Router) doubtLocked(id ids.Slice) {
	d := r.doubts[id]
	if d == nil {
		ctx, cancel := context.WithCancel(context.Background())
		d = &doubt{end: cancel}
		r.doubts[id] = d
		r.watchers.Go(func() { r.suspect(ctx, id) })
	}
	d.attempts++
}

// trustLocked notes that one of them has ended. r.mu is held.
func (r *Router) trustLocked(id ids.Slice) {
	d := r.doubts[id]
	if d.attempts--; d.attempts == 0 {
		d.end()
		delete(r.doubts, id)
	}
}

// suspect asks the other members now and again. A row that names another active
// ends the attempts as it is learned.
func (r *Router) suspect(ctx context.Context, id ids.Slice) {
	t := time.NewTicker(askAgain)
	defer t.Stop()
	for {
		if row, ok := r.Known(id); ok {
			_ = r.ask(ctx, id, r.others(row), row.Active) // nobody answers: the attempts go on
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// waitLocked has an attempt end with the first row that names another active,
// and at once where that is known already. r.mu is held.
func (r *Router) waitLocked(id ids.Slice, w *waiting) {
	if r.waits[id] == nil {
		r.waits[id] = map[*waiting]struct{}{}
	}
	r.waits[id][w] = struct{}{}
	if r.rows[id].Active != w.active {
		w.cancel()
	}
}

// leaveLocked forgets an attempt that has ended. r.mu is held.
func (r *Router) leaveLocked(id ids.Slice, w *waiting) {
	if delete(r.waits[id], w); len(r.waits[id]) == 0 {
		delete(r.waits, id)
	}
}
