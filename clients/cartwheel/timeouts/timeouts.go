// Package timeouts decides how long calls to nodes go on: how long one operation
// may take, what is left when its caller is interrupted, and when writes that make
// no progress are given up. It calls nothing by itself. Limits are safe for use by
// many goroutines.
package timeouts

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
)

// Options set up Limits. None may be missing.
type Options struct {
	// Context ends with the client.
	Context context.Context
	// OpTimeout bounds one operation with all of its retries.
	OpTimeout time.Duration
	// Soft gives up a write that no node takes within OpTimeout.
	Soft bool
	// Progress grows with everything that gets to the nodes.
	Progress func() uint64
}

// Limits makes the contexts that calls to nodes run under.
type Limits struct{ opt Options }

// New returns Limits.
func New(o Options) *Limits { return &Limits{opt: o} }

// interruptGrace is how long a call to a node goes on after its caller was
// interrupted, half of it at least from the signal on: an operation that was
// sent should have its answer, and the caller should not wait a second.
const interruptGrace = 800 * time.Millisecond

// outlasting is a context that outlasts its request's by the grace, on the terms of
// that.
type outlasting struct {
	context.Context
	terms any
}

type outlastingKey struct{}

// Value implements context.Context.
func (o outlasting) Value(key any) any {
	switch key {
	case outlastingKey{}:
		return true
	case termsKey{}:
		return o.terms
	}
	return o.Context.Value(key)
}

// outlast returns a context that ends with the client, not with the request, and
// at the end of the operation's time where it has one.
func (l *Limits) outlast(ctx context.Context) (outlasting, context.CancelFunc) {
	out, stop := trace.Carry(l.opt.Context, ctx), func() {}
	if end, ok := bound(ctx); ok {
		out, stop = context.WithDeadlineCause(out, end, timeIsOver)
	}
	return outlasting{out, ctx.Value(termsKey{})}, stop
}

// outlasts reports whether a context has the grace already.
func outlasts(ctx context.Context) bool { return ctx.Value(outlastingKey{}) != nil }

// Remotely returns the context for calls to nodes on behalf of one request.
func (l *Limits) Remotely(ctx context.Context) (context.Context, context.CancelFunc) {
	if outlasts(ctx) {
		return context.WithTimeout(ctx, l.opt.OpTimeout)
	}
	base, forget := l.outlast(ctx)
	out, cancel := context.WithTimeout(base, l.opt.OpTimeout)
	stop := endAfterGrace(ctx, out, cancel)
	return out, func() { stop(); cancel(); forget() }
}

// endAfterGrace cancels out when ctx ends, but not before the grace is over.
// Nothing watches a call that is shorter than half of it.
func endAfterGrace(ctx, out context.Context, cancel func()) (stop func() bool) {
	return time.AfterFunc(interruptGrace/2, func() {
		select {
		case <-ctx.Done():
		case <-out.Done():
			return
		}
		rest := time.NewTimer(interruptGrace / 2)
		defer rest.Stop()
		select {
		case <-rest.C:
			cancel()
		case <-out.Done():
		}
	}).Stop
}

// UntilTaken is Remotely for what waits until there is room for written bytes: a
// writer is slowed down, never refused, while its caller waits. With Soft it
// gives up as Patiently does.
func (l *Limits) UntilTaken(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.opt.Soft {
		return l.Patiently(ctx)
	}
	if outlasts(ctx) {
		return context.WithCancel(ctx)
	}
	base, forget := l.outlast(ctx)
	out, cancel := context.WithCancel(base)
	stop := endAfterGrace(ctx, out, cancel)
	return out, func() { stop(); cancel(); forget() }
}

// asGoodAsNone is the limit of what is sent until its outcome is known: a context
// without a deadline gets one of the router's own.
const asGoodAsNone = 10 * 365 * 24 * time.Hour

// UntilKnown is what an operation runs under that no caller waits for by itself:
// it is not given up before its outcome is known, but with Soft.
func (l *Limits) UntilKnown(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.opt.Soft {
		return context.WithTimeout(trace.Carry(l.opt.Context, ctx), l.opt.OpTimeout)
	}
	return context.WithTimeout(trace.Carry(l.opt.Context, ctx), asGoodAsNone)
}

// WhileProgress is what Close runs under: it ends when nothing got to the nodes
// for the limit.
func (l *Limits) WhileProgress(limit time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(l.opt.Context)
	p := &stall{limit: limit, progress: l.opt.Progress, lost: func() {
		cancel(fault.Errorf(fault.TimedOut, "timeouts.WhileProgress", "", "nothing got to the nodes for %v", limit))
	}}
	p.start()
	return out, func() { p.stop(); cancel(context.Canceled) }
}

// Patiently is Remotely for what waits until written bytes are on their nodes:
// how long that takes is up to how many they are and how fast the way is. It
// ends when nothing was uploaded or committed for as long as an operation may
// take.
func (l *Limits) Patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	base, graced, forget := ctx, outlasts(ctx), func() {}
	if !graced {
		base, forget = l.outlast(ctx)
	}
	out, cancel := context.WithCancelCause(base)
	p := &stall{limit: l.opt.OpTimeout, progress: l.opt.Progress, lost: func() {
		cancel(fault.Errorf(fault.TimedOut, "timeouts.Patiently", "", "nothing got to the nodes for %v%s", l.opt.OpTimeout, l.keptNote()))
	}}
	p.start()
	stop := func() bool { return true }
	if !graced {
		stop = endAfterGrace(ctx, out, func() { cancel(context.Canceled) })
	}
	return out, func() { stop(); p.stop(); cancel(context.Canceled); forget() }
}

// keptNote says what becomes of writes that a program stops waiting for.
func (l *Limits) keptNote() string {
	if l.opt.Soft {
		return ""
	}
	return "; what was written is kept and sent on"
}

// stall notices that progress stays what it was for the limit, and calls lost
// once.
type stall struct {
	limit    time.Duration
	progress func() uint64
	lost     func()

	mu    sync.Mutex // guards below
	seen  uint64
	over  bool
	timer *time.Timer
}

func (p *stall) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.timer = p.progress(), time.AfterFunc(p.limit, p.look)
}

func (p *stall) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.progress()
	switch {
	case p.over:
	case now != p.seen:
		p.seen = now
		p.timer.Reset(p.limit)
	default:
		p.over = true
		p.lost()
	}
}

func (p *stall) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
}
