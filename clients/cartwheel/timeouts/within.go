package timeouts

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
)

// bounded is the context of an operation that may wait for nodes up to its
// deadline, and no longer, on its terms.
type bounded struct {
	context.Context
	terms cue.Terms
}

type (
	boundedKey struct{}
	termsKey   struct{}
)

// Value implements context.Context.
func (b bounded) Value(key any) any {
	switch key {
	case boundedKey{}:
		return true
	case termsKey{}:
		return b.terms
	}
	return b.Context.Value(key)
}

var timeIsOver = fault.E(fault.TimedOut, "timeouts.Within", ".MaxTime", "no answer within the time that the path allows; what was written is kept and sent on")

// Within puts one operation on its path's terms. It bounds its waiting, over all the
// nodes that it needs: the cue .MaxTime. The contexts that Limits make of the one
// returned end with it. The zero Terms change nothing. What was sent may be done
// all the same.
func Within(ctx context.Context, t cue.Terms) (context.Context, context.CancelFunc) {
	if t.Limit == 0 {
		return ctx, func() {}
	}
	out, cancel := context.WithTimeoutCause(ctx, t.Limit, timeIsOver)
	return bounded{out, t}, cancel
}

// onTerms is a context of what goes on in the background on an operation's terms.
type onTerms struct {
	context.Context
	terms cue.Terms
}

// Value implements context.Context.
func (o onTerms) Value(key any) any {
	if key == (termsKey{}) {
		return o.terms
	}
	return o.Context.Value(key)
}

// On puts what goes on in the background on terms, but for their limit.
func On(ctx context.Context, t cue.Terms) context.Context { return onTerms{ctx, t} }

// bound returns the end of an operation's time, false where it has none.
func bound(ctx context.Context) (time.Time, bool) {
	if ctx.Value(boundedKey{}) == nil {
		return time.Time{}, false
	}
	return ctx.Deadline()
}

// Eventual reports whether an operation takes what is at hand where the truth takes
// too long.
func Eventual(ctx context.Context) bool {
	t, _ := ctx.Value(termsKey{}).(cue.Terms)
	return t.Eventual
}

// Part bounds a step of an operation on eventual terms, which goes on without it, by
// one of so many parts of the time that is left. Other operations wait for the step.
func Part(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok || !Eventual(ctx) {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
}

// ownParts is of how many parts of its time an eventual read gives one to ForOwn.
const ownParts = 4

// ForOwn bounds how long an eventual read waits until the active has what this client
// did itself. Other reads wait to the end.
func ForOwn(ctx context.Context) (context.Context, context.CancelFunc) { return Part(ctx, ownParts) }
