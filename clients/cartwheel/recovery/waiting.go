package recovery

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

// waiting are the objects that it is not decided about. Its zero value is empty.
type waiting struct {
	count atomic.Int32 // of by, so that asking costs nothing where it is empty
	mu    sync.Mutex   // guards by
	by    map[ids.Object]chan struct{}
}

// begin takes the objects in, once.
func (w *waiting) begin(left []content.Leftover) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by = make(map[ids.Object]chan struct{}, len(left))
	for i := range left {
		w.by[left[i].Object] = make(chan struct{})
	}
	w.count.Store(int32(len(w.by)))
}

// decided ends the waits for an object. It may be called twice.
func (w *waiting) decided(o ids.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if done, ok := w.by[o]; ok {
		delete(w.by, o)
		w.count.Add(-1)
		close(done)
	}
}

// await returns when an object is decided about, or ctx ends.
func (w *waiting) await(ctx context.Context, o ids.Object) error {
	w.mu.Lock()
	done := w.by[o]
	w.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.TimedOut, "recovery.await", "writes of "+o.String()+" that a crash left behind are not committed yet", context.Cause(ctx))
	}
}

// awaitAll returns when all objects are decided about, or ctx ends.
func (w *waiting) awaitAll(ctx context.Context) {
	for _, o := range w.list() {
		if w.await(ctx, o) != nil {
			return
		}
	}
}

// list returns the objects that are not decided about.
func (w *waiting) list() []ids.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.by))
}
