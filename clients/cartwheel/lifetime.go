package cartwheel

import (
	"context"
	"sync"
	"time"
)

// lifetime owns a Client's goroutines, and ends them. It is safe for use by many
// goroutines.
type lifetime struct {
	// ctx is what calls to nodes run under; stop ends it.
	ctx   context.Context
	stop  context.CancelFunc
	limit time.Duration // of one operation

	mu   sync.Mutex // guards over, so that nothing starts behind the end
	over bool
	work sync.WaitGroup

	closing sync.Once
	closed  error // of the first Close
}

func newLifetime(limit time.Duration) *lifetime {
	l := &lifetime{limit: limit}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// spawn runs fn in a goroutine that join waits for, unless that has begun: then
// it returns false.
func (l *lifetime) spawn(fn func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.work.Go(fn)
	}
	return !l.over
}

// background runs fn like spawn, within the limit of one operation.
func (l *lifetime) background(fn func(context.Context)) bool {
	return l.spawn(func() {
		ctx, cancel := context.WithTimeout(l.ctx, l.limit)
		defer cancel()
		fn(ctx)
	})
}

// join stops all goroutines and waits for their ends.
func (l *lifetime) join() {
	l.stop()
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.work.Wait()
}
