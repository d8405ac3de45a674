package wire

import (
	"context"

	"cartwheel.dev/geo-config/fault"
)

// poolKey is where a handler's context has the pool that runs it.
type poolKey struct{}

// Yield gives the worker of a Spawn handler back while the handler waits for
// something: for another request, for a client, for another host. What a
// handler waits for may need a worker of the same pool, here or, in a circle,
// elsewhere. Resume must be called before the handler returns or yields again.
// Ctx is the handler's or one derived from it; any other has no worker, and
// Yield does nothing.
//
// At most Limits.Waiting handlers of a pool wait at once. A further one gets
// Overloaded and must fail instead of waiting.
func Yield(ctx context.Context) (resume func(), err error) {
	w, ok := ctx.Value(poolKey{}).(*workers)
	if !ok {
		return func() {}, nil
	}
	if !w.yield() {
		return nil, fault.E(fault.Overloaded, "wire.Yield", "", "too many requests wait for others")
	}
	return w.resume, nil
}
