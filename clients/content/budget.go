package content

import (
	"context"
	"sync"
	"sync/atomic"

	"cartwheel.dev/geo-config/fault"
)

// budget bounds the bytes of dirty buffers. Who would exceed it waits, in
// order; a single charge larger than the bound gets in alone. A share of it is
// kept for files of which little is dirty: they do not wait until megabytes of
// another file are on their way.
type budget struct {
	limit   int64
	reserve int64        // of limit: for few bytes
	waiters atomic.Int32 // len(waiting)+len(little), to look at without the mutex

	mu      sync.Mutex
	used    charge
	waiting []*admission
	little  []*admission // with few bytes
}

// charge is how many bytes are charged, and how many of them as few.
type charge struct{ all, few int64 }

// chargeOf is a charge of n bytes.
func chargeOf(n int64, few bool) charge {
	if few {
		return charge{n, n}
	}
	return charge{all: n}
}

func (c charge) minus() charge { return charge{-c.all, -c.few} }

type admission struct {
	charge
	ready chan struct{}
}

func newBudget(limit int64) *budget { return &budget{limit: limit, reserve: limit / 8} }

// held is how much is charged.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used.all
}

// crowded reports whether somebody waits for room.
func (b *budget) crowded() bool { return b.waiters.Load() > 0 }

// fitsLocked reports whether there is room for a charge. Few bytes have all that is
// free, but while others wait no more than the reserve; the others leave free
// what few bytes have not taken of that. b.mu is held.
func (b *budget) fitsLocked(c charge) bool {
	switch {
	case b.used.all == 0:
		return true
	case c.few > 0:
		return b.used.all+c.all <= b.limit && (len(b.waiting) == 0 || b.used.few+c.few <= b.reserve)
	}
	return b.used.all+c.all+max(b.reserve-b.used.few, 0) <= b.limit
}

// line is where a charge waits.
func (b *budget) line(c charge) *[]*admission {
	if c.few > 0 {
		return &b.little
	}
	return &b.waiting
}

// try charges c where there is room and nobody of its kind waits.
func (b *budget) try(c charge) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tryLocked(c)
}

// tryLocked is try. b.mu is held.
func (b *budget) tryLocked(c charge) bool {
	if len(*b.line(c)) > 0 || !b.fitsLocked(c) {
		return false
	}
	b.add(c)
	return true
}

func (b *budget) add(c charge) {
	b.used.all += c.all
	b.used.few += c.few
}

// admit charges c as soon as there is room. Where it must wait it calls press
// once it stands in line, to have room made.
func (b *budget) admit(ctx, life context.Context, c charge, press func()) error {
	const op fault.Op = "content.admit"
	b.mu.Lock()
	if b.tryLocked(c) {
		b.mu.Unlock()
		return nil
	}
	a := &admission{charge: c, ready: make(chan struct{})}
	line := b.line(c)
	*line = append(*line, a)
	b.waiters.Add(1)
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
	line := b.line(a.charge)
	for i, w := range *line {
		if w == a {
			*line = append((*line)[:i], (*line)[i+1:]...)
			b.waiters.Add(-1)
			b.mu.Unlock()
			b.charge(charge{}) // those behind may fit now
			return
		}
	}
	b.mu.Unlock()
	b.charge(a.minus())
}

// charge adds to what is charged without waiting, or gives back, and lets in
// who fits then.
func (b *budget) charge(c charge) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(c)
	for b.letIn(&b.little) || b.letIn(&b.waiting) {
	}
}

// letIn lets the first of a line in where it fits.
func (b *budget) letIn(line *[]*admission) bool {
	if len(*line) == 0 || !b.fitsLocked((*line)[0].charge) {
		return false
	}
	a := (*line)[0]
	b.add(a.charge)
	*line = (*line)[1:]
	b.waiters.Add(-1)
	close(a.ready)
	return true
}
