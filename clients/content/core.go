package content

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// core is what all files and handles of an engine share: the cluster, the
// bounds, the cache and the goroutines. It knows no files. It may be used from
// many goroutines.
type core struct {
	remote Remote
	opt    Options
	budget *budget
	logged *budget // of the write journal's live bytes; nil: there is no journal
	press  func()  // starts the commit of all that is dirty, to make room in a budget
	cache  *cache
	flight *flight
	// made counts the uploads and commits that succeeded.
	made atomic.Uint64

	// ctx is what background work runs under; stop ends it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // every goroutine of the engine
	hands  *hands

	life    sync.Mutex
	stopped bool // no goroutine starts any more; guarded by life
}

func newCore(remote Remote, o Options, press func()) *core {
	c := &core{remote: remote, opt: o, press: press, hands: newHands()}
	c.budget = newBudget(o.DirtyBytes)
	if o.Journal != nil {
		c.logged = newBudget(journalShare * o.DirtyBytes)
	}
	c.cache = newCache(o.CacheBytes, o.Trace)
	c.flight = newFlight(o.Wall)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// start runs fn in a goroutine that stop joins; false: it is too late.
func (c *core) start(fn func()) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if c.stopped {
		return false
	}
	c.hands.start(c.ctx, &c.work, fn)
	return true
}

// stop ends the goroutines for a reason and joins them. It is idempotent.
func (c *core) stop(reason error) {
	c.life.Lock()
	c.stopped = true
	c.life.Unlock()
	c.cancel(reason)
	c.work.Wait()
}

// admit charges n; where there is no room it starts committing all that is
// dirty and waits. A writer that was let in before and writes now sees that
// another one waits, and starts committing by itself.
func (c *core) admit(ctx context.Context, n charge) error {
	return c.charge(ctx, c.budget, n)
}

func (c *core) charge(ctx context.Context, b *budget, n charge) error {
	if b.try(n) {
		return nil
	}
	return b.admit(ctx, c.ctx, n, c.press)
}

// crowded reports whether a writer waits for room.
func (c *core) crowded() bool {
	return c.budget.crowded() || c.logged != nil && c.logged.crowded()
}

// logRoom waits while the write journal has too many live bytes. It charges
// nothing: who journals does.
func (c *core) logRoom(ctx context.Context) error {
	if c.logged == nil {
		return nil
	}
	if err := c.charge(ctx, c.logged, charge{all: 1}); err != nil {
		return err
	}
	c.logged.charge(charge{all: -1})
	return nil
}

// lastPause is the longest pause before a write that did not get through is sent
// again.
const lastPause = 2 * time.Second

// pause waits; it fails when the engine ends.
func (c *core) pause(d time.Duration) error {
	const op fault.Op = "content.pause"
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.ctx.Done():
		return fault.Wrap(fault.Closed, op, "", context.Cause(c.ctx))
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
