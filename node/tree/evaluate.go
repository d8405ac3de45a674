package tree

import (
	"errors"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// Evaluate evaluates one operation over the state of its slice; body holds the
// bytes that travelled with it. It changes nothing by itself. The caller
// revokes the leases that Outcome.Touched names, and where it had to wait for
// that, evaluates again.
func Evaluate(v View, n Nodes, c Context, op *pb.Operation, body []byte) Outcome {
	if op.GetBatch() != nil {
		return evaluateBatch(v, n, &c, op, body)
	}
	if op.GetMerge() != nil {
		return evaluateMerge(v, n, c, op.GetMerge(), body)
	}
	t := txn{view: v, nodes: n, c: &c, now: op.TimeNs}
	return t.run(op, body)
}

func (t *txn) run(op *pb.Operation, body []byte) Outcome {
	if t.now == 0 {
		t.now = int64(t.c.Time)
	}
	t.inodes = t.room[:0]
	t.result = &pb.Result{}
	t.mutations, t.touched = make([]Mutation, 0, 6), make([]Touch, 0, 3)
	var err error
	if !t.wide {
		t.state, err = ReadState(t.view)
	}
	if err == nil && !t.c.Side {
		err = hasSide(t.view, op)
	}
	if err == nil {
		err = t.dispatch(op, body)
	}
	if err == nil {
		err = t.finish()
	}
	return t.outcome(err)
}

func (t *txn) outcome(err error) Outcome {
	if err == nil {
		if len(t.mutations) > 0 {
			t.result.Serial = uint64(t.c.Serial)
		}
		return Outcome{Result: t.result, Mutations: t.mutations, Inline: t.inline, Needs: t.needs, Touched: t.touched}
	}
	var refused refusal
	var held blocked
	switch {
	case errors.As(err, &refused):
		return Outcome{Result: &pb.Result{Kind: uint32(refused), Message: refused.Error()}, NotEmpty: t.full}
	case errors.As(err, &held):
		return Outcome{Blocked: Intent(held)}
	case errors.As(err, &acrossSlices{}):
		return Outcome{Across: true}
	}
	return Outcome{Err: fault.Wrap(fault.IO, "tree.Evaluate", "", err)}
}

func (t *txn) dispatch(op *pb.Operation, body []byte) error {
	switch o := op.Op.(type) {
	case *pb.Operation_Create:
		return t.create(o.Create, body)
	case *pb.Operation_MakeObject:
		return t.makeObject(o.MakeObject)
	case *pb.Operation_LinkName:
		return t.linkName(o.LinkName)
	case *pb.Operation_Unlink:
		return t.unlink(o.Unlink)
	case *pb.Operation_Rename:
		return t.rename(o.Rename)
	case *pb.Operation_Link:
		return t.link(o.Link)
	case *pb.Operation_SetAttr:
		return t.setAttr(o.SetAttr)
	case *pb.Operation_SetXattr:
		return t.setXattr(o.SetXattr)
	case *pb.Operation_Commit:
		return t.commit(o.Commit, body)
	case *pb.Operation_Hold:
		return t.hold(o.Hold)
	case *pb.Operation_Step:
		return stepping{t}.step(o.Step)
	case *pb.Operation_Reap:
		return t.reap(o.Reap)
	case *pb.Operation_Collect:
		return (&collection{txn: t}).collect(o.Collect)
	case *pb.Operation_GrantRange:
		return numbers{t}.grant(o.GrantRange)
	}
	return refusal(fault.Invalid)
}
