package wire

import (
	"context"

	"cartwheel.dev/node/wire/framing"
)

// Trace names a trace, and the span of it to which a call belongs.
type Trace = framing.Trace

// Tracer follows operations over processes. Its methods run on hot paths: they
// must not block, and may be called from any goroutine.
type Tracer interface {
	// Outgoing returns the trace that a call with this context belongs to; false:
	// it belongs to none, and nothing is sent.
	Outgoing(ctx context.Context) (Trace, bool)
	// Serve begins a span for a request that came with a trace. The context that
	// it returns is that of what is done for the request, and derives from ctx.
	// The host calls end once, with the error of the answer or nil.
	Serve(ctx context.Context, peer string, m framing.Method, t Trace) (_ context.Context, end func(err error))
}
