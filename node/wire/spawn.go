package wire

import (
	"context"
	"fmt"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// work is a request for a handler that may block.
type work struct {
	request *Request
	handler func(context.Context, *Request)
}

// serve runs a spawned handler. A request that the handler left unanswered fails,
// unless its caller no longer waits: then the caller's own deadline ends it, since
// an answer would make the outcome look known.
func (w work) serve(pool *workers[work]) {
	w.handler(lazyContext{w.request, pool}, w.request)
	switch {
	case w.request.settled():
	case w.request.Canceled():
		w.request.settle()
	default:
		w.request.Fail(fault.E(fault.Other, opServe, fmt.Sprintf("method %d", w.request.Method), "the handler gave no answer"))
	}
}

// lazyContext is the Context of a request. It makes the real one when the handler
// first waits for its end or derives another from it. Most handlers are done
// before.
type lazyContext struct {
	r    *Request
	pool *workers[work] // whose worker runs the handler
}

var _ context.Context = lazyContext{}

// Deadline implements context.Context.
func (l lazyContext) Deadline() (time.Time, bool) { return l.r.Deadline() }

// Done implements context.Context.
func (l lazyContext) Done() <-chan struct{} { return l.r.Context().Done() }

// Value implements context.Context.
func (l lazyContext) Value(key any) any {
	if key == (poolKey{}) {
		return l.pool
	}
	return l.r.Context().Value(key)
}

// Err implements context.Context.
func (l lazyContext) Err() error {
	l.r.mu.Lock()
	fresh := l.r.ctx == nil && !l.r.answered
	l.r.mu.Unlock()
	if fresh && !l.r.Canceled() {
		return nil
	}
	return l.r.Context().Err() // it stays what it is now
}

// poolKey is the key of the pool in a handler's context.
type poolKey struct{}

// Yield gives the worker of a Spawn handler back while the handler waits for
// another request, a client or another host. These may need a worker of the same
// pool, here or, in a circle, elsewhere. The handler must call resume before it
// returns or yields again. Ctx is the handler's or one derived from it. For any
// other context Yield does nothing.
//
// At most Limits.Waiting handlers of a pool wait at once. A further one gets
// Overloaded and must fail instead of waiting.
func Yield(ctx context.Context) (resume func(), err error) {
	w, ok := ctx.Value(poolKey{}).(*workers[work])
	if !ok {
		return func() {}, nil
	}
	if !w.yield() {
		return nil, fault.E(fault.Overloaded, "wire.Yield", "", "too many requests wait for others")
	}
	return w.resume, nil
}
