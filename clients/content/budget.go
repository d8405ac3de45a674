package content

import (
	"context"
	"sync"
	"sync/atomic"

	"cartwheel.dev/geo-config/fault"
)

// budget bounds the bytes of dirty buffers. Who would exceed it waits, in
// order; a single charge larger than the bound gets in alone.
type budget struct {
	limit   int64
	waiters atomic.Int32 // len(waiting), to look at without the mutex

	mu      sync.Mutex
	used    int64
	waiting []*admission
}

type admission struct {
	n     int64
	ready chan struct{}
}

func newBudget(limit int64) *budget { return &budget{limit: limit} }

// held is how much is charged.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// crowded reports whether somebody waits for room.
func (b *budget) crowded() bool { return b.waiters.Load() > 0 }

// try charges n where there is room and nobody waits.
func (b *budget) try(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) > 0 || (b.used > 0 && b.used+n > b.limit) {
		return false
	}
	b.used += n
	return true
}

// admit charges n as soon as there is room. Where it must wait it calls press
// once it stands in line, to have room made.
func (b *budget) admit(ctx, life context.Context, n int64, press func()) error {
	const op fault.Op = "content.budget.admit"
	b.mu.Lock()
	if len(b.waiting) == 0 && (b.used == 0 || b.used+n <= b.limit) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	a := &admission{n: n, ready: make(chan struct{})}
	b.waiting = append(b.waiting, a)
	b.waiters.Store(int32(len(b.waiting)))
	b.mu.Unlock()
	press()
	select {
	case <-a.ready:
		return nil
	case <-ctx.Done():
		b.leave(a)
		return fault.Wrap(fault.Interrupted, op, "", context.Cause(ctx))
	case <-life.Done():
		b.leave(a)
		return fault.Wrap(fault.Closed, op, "", context.Cause(life))
	}
}

// leave gives up waiting, or gives back what was charged meanwhile.
func (b *budget) leave(a *admission) {
	b.mu.Lock()
	for i, w := range b.waiting {
		if w == a {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.waiters.Store(int32(len(b.waiting)))
			b.mu.Unlock()
			b.charge(0) // those behind may fit now
			return
		}
	}
	b.mu.Unlock()
	b.charge(-a.n)
}

// charge adds to what is charged without waiting, or gives back.
func (b *budget) charge(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
	for len(b.waiting) > 0 {
		a := b.waiting[0]
		if b.used > 0 && b.used+a.n > b.limit {
			return
		}
		b.used += a.n
		b.waiting = b.waiting[1:]
		b.waiters.Store(int32(len(b.waiting)))
		close(a.ready)
	}
}
