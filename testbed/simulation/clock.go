package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// pass lets time pass.
func pass(d time.Duration) {
	t := time.NewTimer(d)
	<-t.C
}

// clock is the boottime clock of one machine: it runs a little too fast or too
// slow, and goes on while the machine is suspended.
type clock struct {
	mu    sync.Mutex // guards below
	began time.Time  // when it got its rate
	base  time.Duration
	rate  float64
	last  time.Duration
}

func newClock(rate float64) *clock {
	return &clock{began: time.Now(), base: time.Hour, rate: rate}
}

// read gives the time since the machine was switched on. It never falls.
func (c *clock) read() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked()
}

// readLocked is read. c.mu is held.
func (c *clock) readLocked() time.Duration {
	c.last = max(c.last, c.base+time.Duration(c.rate*float64(time.Since(c.began))))
	return c.last
}

// turn changes the clock's rate.
func (c *clock) turn(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = c.readLocked()
	c.began, c.rate = time.Now(), rate
}

// wall is the time of day of one machine, which may be wrong and be set.
type wall struct {
	mu     sync.Mutex // guards below
	offset time.Duration
}

func (w *wall) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

func (w *wall) set(offset time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset = offset
}

// await polls until check is content.
func await(ctx context.Context, what string, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		t := time.NewTimer(20_000_017)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

// ended reports whether the life is over whose end closes a channel.
func ended(over chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}
