package server

import (
	"context"
	"sync"
)

// lifetime owns the goroutines of a node: all of them end when it does. It is
// safe for concurrent use.
type lifetime struct {
	ctx context.Context // of everything that runs; ends at stop
	end context.CancelFunc
	wg  sync.WaitGroup
	// starting is held while a goroutine is started, so that stop misses none.
	starting sync.Mutex
}

func (l *lifetime) init() { l.ctx, l.end = context.WithCancel(context.Background()) }

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

// stop ends the context of all goroutines. No new one starts.
func (l *lifetime) stop() {
	l.starting.Lock()
	l.end()
	l.starting.Unlock()
}

// wait returns once all goroutines have ended.
func (l *lifetime) wait() { l.wg.Wait() }
