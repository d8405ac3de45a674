package cartwheel

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
)

// patiently is remotely for what waits until written bytes are on their nodes:
// how long that takes is up to how many they are and how fast the way is. It
// ends when nothing was uploaded or committed for as long as an operation may
// take.
func (c *Client) patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(trace.Carry(c.ctx, ctx))
	p := &patience{limit: c.opt.OpTimeout, progress: c.engine.Progress, lost: func() {
		cancel(fault.E(fault.TimedOut, "cartwheel.patiently", "", "nothing written got to the nodes for a while"))
	}}
	p.start()
	stop := endAfterGrace(ctx, out, func() { cancel(context.Canceled) })
	return out, func() { stop(); p.stop(); cancel(context.Canceled) }
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
