package operate

import (
	"fmt"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/replica"
)

// answerLate answers an operation that changes nothing once everything that
// its evaluation saw is committed.
func (l *Loop) answerLate(s *slice, op *Operation, a Answer) {
	serial, _ := l.o.Core.Next(s.id)
	a.Serial = s.applied
	if serial-1 <= s.applied || len(s.proposed) == 0 {
		l.finish(op, a)
		return
	}
	s.answers = append(s.answers, lateAnswer{after: serial - 1, op: op, a: a})
}

// finish ends an operation.
func (l *Loop) finish(op *Operation, a Answer) {
	if op.change != 0 {
		l.o.Leases.Changed(op.change)
		op.change = 0
	}
	if len(op.born) > 0 {
		if a.Result != nil {
			a.Grants = op.born
		} else {
			l.o.Leases.Unborn(op.born)
		}
		op.born = nil
	}
	if op.admitted {
		op.admitted = false
		l.admission.give(op)
	}
	done := op.Done
	op.Done = nil
	a.Cost = op.cost
	if done != nil {
		done(op, a)
	}
}

// reply answers proposals.
func (l *Loop) reply(replies []replica.Reply) {
	for i := range replies {
		r := &replies[i]
		op := l.waiting[r.Token]
		if op == nil {
			continue
		}
		delete(l.waiting, r.Token)
		l.finish(op, l.answer(op, r))
	}
}

// answer turns the core's reply into the operation's.
func (l *Loop) answer(op *Operation, r *replica.Reply) Answer {
	a := Answer{Serial: r.Serial, Epoch: r.Epoch, Time: uint64(r.Time)}
	switch r.Kind {
	case fault.None:
		if op.serial != 0 && op.serial == r.Serial {
			a.Result = op.outcome.Result
		} else {
			a.Encoded = r.Result
		}
	case fault.NotActive, fault.WrongEpoch, fault.TimedOut:
		// Unknown ones too: the client asks the next active under the same number.
		a.Refused = &Refusal{Kind: uint32(fault.NotActive), Row: l.slice(op.Slice).row, Why: "the slice's active changed or its lease lapsed"}
	case fault.Expired:
		a.Err = fault.E(r.Kind, "operate.Operate", "", "the client's registration has expired: register under a new number")
	default:
		a.Err = fault.E(r.Kind, "operate.Operate", fmt.Sprintf("slices/%d", op.Slice), "")
	}
	return a
}
