package operate

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
)

// A time of a slice is closed once an entry with a later time is applied. Each entry
// has a later time than the one before it, whichever node leads, and an applied entry
// is in the log of every later leader. So nothing that commits from then on has a time
// at or before a closed one. The exception is an intent: what its last step writes has
// the intent's own time, which may be earlier. Its keys are locked from an entry at or
// before that time on, so that a reader finds the lock (tree.AsOf).

// CloseTime returns once a time of a slice is closed, for which it orders an empty entry
// where the log has no later time. The caller's clock must have passed the time. Errors:
// Busy while a later entry is on its way, or the refusal's kind where this node does not
// act for the slice. It must not be called on the loop's goroutine.
func CloseTime(ctx context.Context, l *Loop, id ids.Slice, at hlc.Time) error {
	const name fault.Op = "operate.CloseTime"
	done := make(chan error, 1)
	err := l.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		s := l.slice(id)
		if applied := core.AppliedTime(id); applied > at {
			s.pub.AppliedTime.Store(uint64(applied))
			done <- nil
			return
		}
		serial, floor := core.Next(id)
		if floor > at {
			done <- fault.E(fault.Busy, name, "", "a later operation is being committed")
			return
		}
		op := &Operation{Slice: id, Internal: true, Done: func(_ *Operation, a Answer) { done <- closedBy(a) }}
		if refused := l.refuse(s, op); refused != nil {
			l.finish(op, Answer{Refused: refused})
			return
		}
		l.wait(op, replica.Proposal{Entry: replica.Entry{Slice: id, Serial: serial, Time: l.timeAbove(max(floor, at))}})
		if next, _ := core.Next(id); next == serial {
			return // the reply says why
		}
		op.serial = serial
		s.proposed[serial] = op
	})
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fault.Wrap(fault.TimedOut, name, "", ctx.Err())
	}
}

// closedBy is the error of what became of an empty entry.
func closedBy(a Answer) error {
	if a.Refused != nil {
		return fault.E(fault.Kind(a.Refused.Kind), "operate.CloseTime", "", a.Refused.Why)
	}
	return a.Err
}
