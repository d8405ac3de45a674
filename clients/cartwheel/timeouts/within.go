package timeouts

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// bounded is the context of an operation that may wait for nodes up to its
// deadline, and no longer.
type bounded struct{ context.Context }

type boundedKey struct{}

// Value implements context.Context.
func (b bounded) Value(key any) any {
	if key == (boundedKey{}) {
		return true
	}
	return b.Context.Value(key)
}

var timeIsOver = fault.E(fault.TimedOut, "timeouts.Within", ".MaxTime", "no answer within the time that the path allows; what was written is kept and sent on")

// Within bounds the waiting of one operation, over all the nodes that it needs: the
// cue .MaxTime. The contexts that Limits make of the one returned end with it. Most
// 0 bounds nothing. What was sent may be done all the same.
func Within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if most == 0 {
		return ctx, func() {}
	}
	out, cancel := context.WithTimeoutCause(ctx, most, timeIsOver)
	return bounded{out}, cancel
}

// bound returns the end of an operation's time, false where it has none.
func bound(ctx context.Context) (time.Time, bool) {
	if ctx.Value(boundedKey{}) == nil {
		return time.Time{}, false
	}
	return ctx.Deadline()
}
