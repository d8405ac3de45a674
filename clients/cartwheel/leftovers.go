package cartwheel

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// recovery is what an earlier process left in the write journal and this one has
// not decided about yet. Such an object is not opened.
type recovery struct {
	count   atomic.Int32 // of waiting
	mu      sync.Mutex   // guards waiting
	waiting map[ids.Object]chan struct{}
}

// begin takes the objects in.
func (r *recovery) begin(left []content.Leftover) {
	r.waiting = make(map[ids.Object]chan struct{}, len(left))
	for i := range left {
		r.waiting[left[i].Object] = make(chan struct{})
	}
	r.count.Store(int32(len(r.waiting)))
}

// decided lets those go on who wait for an object. It may be called twice.
func (r *recovery) decided(o ids.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if done, ok := r.waiting[o]; ok {
		delete(r.waiting, o)
		r.count.Add(-1)
		close(done)
	}
}

// await returns when an object may be opened.
func (r *recovery) await(ctx context.Context, o ids.Object) error {
	r.mu.Lock()
	done := r.waiting[o]
	r.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.TimedOut, "cartwheel.recovery", "writes of "+o.String()+" that a crash left behind are not committed yet", context.Cause(ctx))
	}
}

// list returns the objects that are not decided.
func (r *recovery) list() []ids.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.waiting))
}

// awaitRecovery returns when an object may be opened, within the limit of one
// operation.
func (c *Client) awaitRecovery(ctx context.Context, o ids.Object) error {
	if c.recovery.count.Load() == 0 {
		return nil
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	return c.recovery.await(out, o)
}

// flushFirst commits what is dirty of an object before something is done to it,
// and what a crash left of it.
func (c *Client) flushFirst(ctx context.Context, o ids.Object) error {
	if err := c.awaitRecovery(ctx, o); err != nil {
		return err
	}
	slow, done := c.limits.Patiently(ctx)
	defer done()
	return c.engine.FlushObject(slow, o)
}

// awaitAll returns when all objects are decided, or ctx ends.
func (r *recovery) awaitAll(ctx context.Context) {
	for _, o := range r.list() {
		if r.await(ctx, o) != nil {
			return
		}
	}
}
