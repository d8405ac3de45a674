package cartwheel

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// interruptGrace is how long a call to a node goes on after its caller was
// interrupted, half of it at least from the signal on: an operation that was
// sent should have its answer, and the caller should not wait a second.
const interruptGrace = 800 * time.Millisecond

// outlasting is a context that outlasts its request's by the grace.
type outlasting struct{ context.Context }

type outlastingKey struct{}

// Value implements context.Context.
func (o outlasting) Value(key any) any {
	if key == (outlastingKey{}) {
		return true
	}
	return o.Context.Value(key)
}

// outlast returns a context that ends with the client, not with the request.
func (c *Client) outlast(ctx context.Context) outlasting { return outlasting{trace.Carry(c.ctx, ctx)} }

// outlasts reports whether a context has the grace already.
func outlasts(ctx context.Context) bool { return ctx.Value(outlastingKey{}) != nil }

// remotely returns the context for calls to nodes on behalf of one request.
func (c *Client) remotely(ctx context.Context) (context.Context, context.CancelFunc) {
	if outlasts(ctx) {
		return context.WithTimeout(ctx, c.opt.OpTimeout)
	}
	out, cancel := context.WithTimeout(c.outlast(ctx), c.opt.OpTimeout)
	stop := endAfterGrace(ctx, out, cancel)
	return out, func() { stop(); cancel() }
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

// untilTaken is remotely for what waits until there is room for written bytes: a
// writer is slowed down, never refused, while its caller waits. With Soft it
// gives up as patiently does.
func (c *Client) untilTaken(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.opt.Soft {
		return c.patiently(ctx)
	}
	if outlasts(ctx) {
		return context.WithCancel(ctx)
	}
	out, cancel := context.WithCancel(c.outlast(ctx))
	stop := endAfterGrace(ctx, out, cancel)
	return out, func() { stop(); cancel() }
}

// asGoodAsNone is the limit of what is sent until its outcome is known: a context
// without a deadline gets one of the router's own.
const asGoodAsNone = 10 * 365 * 24 * time.Hour

// untilKnown is what an operation runs under that no caller waits for by itself:
// it is not given up before its outcome is known, but with Soft.
func (c *Client) untilKnown(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.opt.Soft {
		return context.WithTimeout(trace.Carry(c.ctx, ctx), c.opt.OpTimeout)
	}
	return context.WithTimeout(trace.Carry(c.ctx, ctx), asGoodAsNone)
}

// whileProgress is what Close runs under: it ends when nothing got to the nodes
// for the limit.
func (c *Client) whileProgress(limit time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(c.ctx)
	p := &patience{limit: limit, progress: c.Progress, lost: func() {
		cancel(fault.Errorf(fault.TimedOut, "cartwheel.Close", "", "nothing got to the nodes for %v", limit))
	}}
	p.start()
	return out, func() { p.stop(); cancel(context.Canceled) }
}

// Progress grows with everything that gets to the nodes.
func (c *Client) Progress() uint64 { return c.engine.Progress() + c.arrived.Load() }

// patiently is remotely for what waits until written bytes are on their nodes:
// how long that takes is up to how many they are and how fast the way is. It
// ends when nothing was uploaded or committed for as long as an operation may
// take.
func (c *Client) patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	base, graced := ctx, outlasts(ctx)
	if !graced {
		base = c.outlast(ctx)
	}
	out, cancel := context.WithCancelCause(base)
	p := &patience{limit: c.opt.OpTimeout, progress: c.Progress, lost: func() {
		cancel(fault.Errorf(fault.TimedOut, "cartwheel.patiently", "", "nothing got to the nodes for %v%s", c.opt.OpTimeout, c.keptNote()))
	}}
	p.start()
	stop := func() bool { return true }
	if !graced {
		stop = endAfterGrace(ctx, out, func() { cancel(context.Canceled) })
	}
	return out, func() { stop(); p.stop(); cancel(context.Canceled) }
}

// keptNote says what becomes of writes that a program stops waiting for.
func (c *Client) keptNote() string {
	if c.opt.Soft {
		return ""
	}
	return "; what was written is kept and sent on"
}

// flushFirst commits what is dirty of an object before something is done to it,
// and what a crash left of it.
func (c *Client) flushFirst(ctx context.Context, o ids.Object) error {
	if err := c.awaitRecovery(ctx, o); err != nil {
		return err
	}
	slow, done := c.patiently(ctx)
	defer done()
	return c.engine.FlushObject(slow, o)
}

// patience is lost when progress stays what it was for the limit.
type patience struct {
	limit    time.Duration
	progress func() uint64
	lost     func()

	mu    sync.Mutex // guards below
	seen  uint64
	over  bool
	timer *time.Timer
}

func (p *patience) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.timer = p.progress(), time.AfterFunc(p.limit, p.look)
}

func (p *patience) look() {
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

func (p *patience) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
}
