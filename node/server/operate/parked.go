package operate

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/tree"
)

// park keeps an operation until the intent that holds what it needs is
// settled, or until changes are allowed again.
func (l *Loop) park(s *slice, op *Operation, i tree.Intent) {
	if op.since == 0 {
		op.since = l.now
	}
	op.blocked = i
	s.parked = append(s.parked, op)
}

// unpark evaluates the parked operations of a slice again.
func (l *Loop) unpark(s *slice) {
	parked := s.parked
	s.parked = nil
	l.retry = append(l.retry, parked...)
}

// parkedFor is how long an operation waits for an intent at most; its client
// then tries again.
const parkedFor = 10_000_000_000

// expireParked answers those that waited too long, and lets time-bound ones go.
func (l *Loop) expireParked() {
	for _, s := range l.slices {
		if len(s.parked) == 0 {
			continue
		}
		keep := s.parked[:0]
		for _, op := range s.parked {
			switch {
			case op.blocked == 0 && l.now >= s.notBefore:
				l.retry = append(l.retry, op)
			case l.now-op.since > parkedFor:
				l.finish(op, Answer{Err: fault.E(fault.Again, "operate.Operate", "", "an operation over several slices holds what is needed")})
			default:
				keep = append(keep, op)
			}
		}
		clear(s.parked[len(keep):])
		s.parked = keep
	}
}
