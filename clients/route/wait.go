package route

import (
	"context"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Wait is Active for a request that its node leaves unanswered until its time
// has come, such as one for a lock. That it takes long is no reason to suspect
// the node, so no other member is asked. An attempt ends when the connection
// breaks, when its node refuses it because another one acts for the slice, and
// when a row that names another one is learned.
func (r *Router) Wait(ctx context.Context, id ids.Slice, attempt Attempt) error {
	return r.active(ctx, id, attempt, r.unwatched)
}

// askTogether asks the members for a newer row, or waits for the answer to such
// a question that is under way. If none knows better, the next attempt tells.
func (r *Router) askTogether(ctx context.Context, row geoconfig.SliceRow) {
	r.mu.Lock()
	under, ok := r.asking[row.ID]
	if !ok {
		under = make(chan struct{})
		r.asking[row.ID] = under
	}
	r.mu.Unlock()
	if ok {
		select {
		case <-under:
		case <-ctx.Done():
		}
		return
	}
	_ = r.ask(ctx, row.ID, r.others(row), "")
	r.mu.Lock()
	delete(r.asking, row.ID)
	r.mu.Unlock()
	close(under)
}

// waiting is an attempt of Wait.
type waiting struct {
	active ids.Node
	cancel context.CancelFunc
}

// unwatched runs one attempt until a row that names another active is learned.
func (r *Router) unwatched(ctx context.Context, row geoconfig.SliceRow, attempt Attempt) (*pb.Refusal, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &waiting{active: row.Active, cancel: cancel}
	r.mu.Lock()
	r.waitLocked(row.ID, w)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leaveLocked(row.ID, w)
	}()
	return attempt(ctx, row.Active, row.Epoch)
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
