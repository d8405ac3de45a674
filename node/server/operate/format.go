package operate

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/tree"
)

// Format proposes the first entry of an empty slice; done is called with what
// became of it.
func (l *Loop) Format(id ids.Slice, wall int64, done func(error)) {
	ok := l.in.put(event{kind: eventCall, call: func() {
		s := l.slice(id)
		serial, floor := l.o.Core.Next(id)
		if s.role != replica.RoleLeading || len(s.proposed) > 0 {
			done(fault.E(fault.NotActive, "operate.Format", "", "this node does not act for the slice now"))
			return
		}
		state, err := tree.ReadState(s.view)
		if err != nil || state.Next != 0 {
			done(err)
			return
		}
		// An empty state behind a log with operations was lost, here at least.
		invariant.Check(l.o.Core.Unused(id), invariant.Violation{Rule: invariant.FormatEmpty, Slice: id, Serial: serial, File: "meta", Got: uint64(serial - 1)})
		at := l.timeAbove(floor)
		op := &Operation{Slice: id, Internal: true, Done: func(_ *Operation, a Answer) {
			if a.Refused != nil {
				a.Err = fault.E(fault.Kind(a.Refused.Kind), "operate.Format", "", a.Refused.Why)
			}
			done(a.Err)
		}}
		op.outcome.Mutations = tree.Format(tree.Context{Slice: id, Serial: serial, Time: at, Node: l.o.Self}, nil, wall)
		l.wait(op, replica.Proposal{Entry: replica.Entry{Slice: id, Serial: serial, Time: at, Data: tree.AppendData(nil, op.outcome.Mutations, nil)}})
		if next, _ := l.o.Core.Next(id); next == serial {
			return
		}
		op.serial, s.decisive = serial, serial
		s.proposed[serial] = op
		for _, m := range op.outcome.Mutations {
			s.over.set(m.Key, m.Value, serial)
		}
	}})
	if !ok {
		done(fault.E(fault.Closed, "operate.Format", "", "the node stops"))
	}
}
