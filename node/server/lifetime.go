package server

import (
	"context"
	"sync"
	"sync/atomic"
)

// lifetime owns the goroutines of a node, and knows why and how often it is to
// end: all goroutines end when it does. It is safe for concurrent use.
type lifetime struct {
	ctx context.Context // of everything that runs; ends at stop
	end context.CancelFunc
	wg  sync.WaitGroup
	// starting is held while a goroutine is started, so that stop misses none.
	starting sync.Mutex

	failure chan error  // the first fatal error; its owner then closes the node
	failed  atomic.Bool // after a failure; stays set
	aborted atomic.Bool // the node stops as in a crash; stays set

	closing  atomic.Bool   // a caller runs close's function; stays set
	closed   chan struct{} // closed when that has returned
	closeErr error         // its error; set before closed is closed
}

func (l *lifetime) init() {
	l.ctx, l.end = context.WithCancel(context.Background())
	l.failure = make(chan error, 1)
	l.closed = make(chan struct{})
}

// spawn runs f on a goroutine that wait waits for. After stop it does nothing.
func (l *lifetime) spawn(f func(context.Context)) {
	l.starting.Lock()
	defer l.starting.Unlock()
	if l.ctx.Err() != nil {
		return
	}
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		f(l.ctx)
	}()
}

// fail notes a failure that ends the node, and reports whether it is the first
// that waits to be heard. It does not block.
func (l *lifetime) fail(err error) (first bool) {
	select {
	case l.failure <- err:
		first = true
	default:
	}
	l.failed.Store(true)
	return first
}

// canPassOn reports whether the node may still hand anything over: it has not
// failed, and is not to stop as in a crash.
func (l *lifetime) canPassOn() bool { return !l.failed.Load() && !l.aborted.Load() }

// close runs f once, for the first caller. All callers wait for it and get its
// error. The others wait at a channel, not at a sync.Once: virtual time stands
// still while a goroutine waits for a mutex.
func (l *lifetime) close(f func() error) error {
	if l.closing.CompareAndSwap(false, true) {
		l.closeErr = f()
		close(l.closed)
	}
	<-l.closed
	return l.closeErr
}

// stop ends the context of all goroutines. No new one starts.
func (l *lifetime) stop() {
	l.starting.Lock()
	l.end()
	l.starting.Unlock()
}

// wait returns once all goroutines have ended.
func (l *lifetime) wait() { l.wg.Wait() }
