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
