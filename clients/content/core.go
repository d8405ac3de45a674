package content

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// admit charges c; where there is no room it starts committing all that is
// dirty and waits. A writer that was let in before and writes now sees that
// another one waits, and starts committing by itself.
func (e *Engine) admit(ctx context.Context, c charge) error {
	return e.charge(ctx, e.budget, c)
}

func (e *Engine) charge(ctx context.Context, b *budget, c charge) error {
	if b.try(c) {
		return nil
	}
	return b.admit(ctx, e.ctx, c, func() {
		for _, f := range e.dirtyFiles() {
			f.freezeIf(func(*layer) bool { return true })
		}
	})
}

// crowded reports whether a writer waits for room.
func (e *Engine) crowded() bool {
	return e.budget.crowded() || e.logged != nil && e.logged.crowded()
}

// logRoom waits while the write journal has too many live bytes. It charges
// nothing: who journals does.
func (e *Engine) logRoom(ctx context.Context) error {
	if e.logged == nil {
		return nil
	}
	if err := e.charge(ctx, e.logged, charge{all: 1}); err != nil {
		return err
	}
	e.logged.charge(charge{all: -1})
	return nil
}

// start runs fn in a goroutine that Close joins; false: it is too late.
func (e *Engine) start(fn func()) bool {
	e.life.Lock()
	defer e.life.Unlock()
	if e.stopped {
		return false
	}
	e.hands.start(e.ctx, &e.work, fn)
	return true
}

// lastPause is the longest pause before a write that did not get through is sent
// again.
const lastPause = 2 * time.Second

// pause waits; it fails when the engine ends.
func (e *Engine) pause(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-e.ctx.Done():
		return fault.Wrap(fault.Closed, "content.pause", "", context.Cause(e.ctx))
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
