package timeouts

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
)

const (
	// comesAtLeast is how many bytes must come for a read to go on. Heartbeats bring less.
	comesAtLeast = 64 << 10
	// comesParts is into how many parts an operation's time is cut: at the end of each it
	// is looked what came. At the end of the first one it is only noted, so that a read
	// that takes no time costs no look.
	comesParts = 8
	// comesMost is for how many times an operation's time one read goes on at the most.
	comesMost = 10
)

// WhileComing is Remotely for a read: on a line that many readers share, its bytes come
// behind those of others. It ends when next to nothing came for about as long as an
// operation may take, and after ten times that in any case. came counts bytes, over each
// connection from 0. It is called from another goroutine.
func (l *Limits) WhileComing(ctx context.Context, came func() uint64) (context.Context, context.CancelFunc) {
	base, graced, forget := ctx, outlasts(ctx), func() {}
	if !graced {
		base, forget = l.outlast(ctx)
	}
	out, cancel := context.WithCancelCause(base)
	d := &dearth{part: l.opt.OpTimeout / comesParts, came: came, lost: func() {
		cancel(fault.Errorf(fault.TimedOut, "timeouts.WhileComing", "", "nothing came from the nodes for %v", l.opt.OpTimeout))
	}}
	d.start()
	stop := func() bool { return true }
	if !graced {
		stop = endAfterGrace(ctx, out, func() { cancel(context.Canceled) })
	}
	return out, func() { stop(); d.stop(); cancel(context.Canceled); forget() }
}

// dearth notices that next to nothing comes, and calls lost once.
type dearth struct {
	part time.Duration
	came func() uint64
	lost func()

	mu    sync.Mutex // guards below
	looks int
	quiet int // looks one after the other that found next to nothing
	seen  uint64
	over  bool
	timer *time.Timer
}

func (d *dearth) start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(d.part, d.look)
}

func (d *dearth) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	now := d.came()
	d.looks++
	switch {
	case d.looks == 1 || now < d.seen || now-d.seen >= comesAtLeast: // a new connection begins at 0
		d.seen, d.quiet = now, 0
	default:
		d.quiet++
	}
	if d.quiet >= comesParts-1 || d.looks >= comesMost*comesParts {
		d.over = true
		d.lost()
		return
	}
	d.timer.Reset(d.part)
}

func (d *dearth) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	d.timer.Stop()
}
