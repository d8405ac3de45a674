package operate

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Propose runs an internal operation at a slice that this node acts for and
// waits for its answer. With client and number it decides that operation of the
// client. It must not be called on the loop's goroutine. Errors: the kind of the
// refusal where this node does not act for the slice, TimedOut once ctx ends,
// and the operation's own.
func Propose(ctx context.Context, l *Loop, id ids.Slice, op *pb.Operation, client, number uint64) (Answer, error) {
	const name fault.Op = "operate.Propose"
	done := make(chan Answer, 1)
	l.Operate(&Operation{Slice: id, Op: op, Internal: true, Trusted: true, Client: client, Number: number,
		Done: func(_ *Operation, a Answer) { done <- a }})
	select {
	case a := <-done:
		if a.Refused != nil {
			return a, fault.E(fault.Kind(a.Refused.Kind), name, "", a.Refused.Why)
		}
		return a, a.Err
	case <-ctx.Done():
		return Answer{}, fault.Wrap(fault.TimedOut, name, "", ctx.Err())
	}
}
