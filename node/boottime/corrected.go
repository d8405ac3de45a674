package boottime

import (
	"sync"
	"time"
)

// jump is how far wall time must run ahead of monotonic time between two
// readings to be taken for a suspension.
const jump = time.Second

// sinceStart returns Go's monotonic clock, which stops during a suspension.
func sinceStart() Func {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// corrected builds a clock from one that stops during a suspension: where the
// wall clock went more than jump further, the time that it shows counts. A wall
// clock that somebody sets forward makes leases end early, which is safe; one
// set back changes nothing.
func corrected(mono Func, wall func() time.Time) Func {
	var mu sync.Mutex // guards the three below
	lastMono, lastWall := mono(), wall().Round(0)
	var total time.Duration
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		m, w := mono(), wall().Round(0) // Round drops the monotonic reading
		step := max(m-lastMono, 0)
		if wallStep := w.Sub(lastWall); wallStep-step > jump {
			step = wallStep
		}
		lastMono, lastWall = m, w
		total += step
		return total
	}
}
