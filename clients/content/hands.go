package content

import (
	"context"
	"sync"
)

// keepHands is how many goroutines of an engine wait for more to do. What they
// do needs deep stacks, which a new goroutine grows step by step, at more cost
// than a small file's commit has otherwise in this package.
const keepHands = 16

// hands runs functions on goroutines that are used again. The zero value is
// not ready; see newHands.
type hands struct {
	work chan func() // taken by those that wait

	mu      sync.Mutex // guards below
	waiting int        // goroutines that wait for work, at most keepHands
}

func newHands() *hands { return &hands{work: make(chan func())} }

// start runs fn on a goroutine that waits, or on a new one of the group. Until
// ctx ends some of these stay.
func (h *hands) start(ctx context.Context, group *sync.WaitGroup, fn func()) {
	select {
	case h.work <- fn:
	default:
		group.Go(func() {
			for fn != nil {
				fn()
				fn = h.next(ctx)
			}
		})
	}
}

// next waits for something to do; nil: the goroutine is to end.
func (h *hands) next(ctx context.Context) func() {
	if !h.wait(1) {
		return nil
	}
	defer h.wait(-1)
	select {
	case fn := <-h.work:
		return fn
	case <-ctx.Done():
		return nil
	}
}

// wait counts one more or less that waits; false: enough wait already.
func (h *hands) wait(more int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting+more > keepHands {
		return false
	}
	h.waiting += more
	return true
}
