package operate

import (
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// abortedMost bounds the intents that a slice remembers as aborted. A step that comes later
// than so many others holds what it locks until a sweep asks its coordinator.
const abortedMost = 512

// refuseAborted reports whether a step prepares an intent that another step has aborted, and
// answers it then. A coordinator gives up what it waits for too long, and its step may still
// wait here, for a lock or for a revocation: it would hold what nobody gives back.
func refuseAborted(l *Loop, s *slice, op *Operation) bool {
	step := op.Op.GetStep()
	if step == nil || tree.Intent(step.Intent).Slice() == s.id {
		return false
	}
	i := tree.Intent(step.Intent)
	switch {
	case step.Phase == pb.Step_ABORT && !slices.Contains(s.aborted, i):
		if len(s.aborted) == abortedMost {
			s.aborted = s.aborted[1:]
		}
		s.aborted = append(s.aborted, i)
		l.unpark(s)
	case step.Phase == pb.Step_PREPARE && slices.Contains(s.aborted, i):
		l.finish(op, Answer{Err: fault.E(fault.Canceled, "operate.Operate", "", "the operation over several slices was given up")})
		return true
	}
	return false
}
