package calls

import (
	"context"
	"math/rand/v2"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// An operation on eventual terms whose active does not answer is done at the side: by
// a node that has a copy of the slice, keeps what was done, and has the active merge
// it later. Whether the active did it too is then not known, which is why only what
// may be done twice goes there.

// mayBeAside reports whether an operation may be done at the side after the active may
// have done it.
func mayBeAside(op *pb.Operation) bool {
	switch o := op.Op.(type) {
	case *pb.Operation_Create:
		return !o.Create.Nameless
	case *pb.Operation_Commit:
		return !o.Commit.Append
	case *pb.Operation_Unlink, *pb.Operation_Rename, *pb.Operation_Link, *pb.Operation_SetAttr, *pb.Operation_SetXattr:
		return true
	}
	return false
}

// errLacksName is for a node that has not heard yet of a name that this client gave.
var errLacksName = fault.E(fault.Again, "calls", "", "this node lacks a name that the client gave")

// eventually runs an operation at the active of its slice, or at the side.
func (s *Sender) eventually(ctx context.Context, slice ids.Slice, req *pb.OperateRequest, body [][]byte,
	atActive func(context.Context) (*pb.OperateResponse, ids.Node, error)) (resp *pb.OperateResponse, by ids.Node, err error) {
	open := false // an attempt may have been done, and got no answer
	active := func(ctx context.Context) (err error) {
		s.setBase(req.Operation)
		mayLack := s.setNames(ctx, req.Operation, true)
		req.ValidNs = 0
		if end, ok := ctx.Deadline(); ok { // what comes later was done aside
			req.Hlc, req.ValidNs = uint64(s.opt.HLC.Now()), uint64(max(time.Until(end), 1))
		}
		resp, by, err = atActive(ctx)
		if isDone(req.Operation, resp.GetResult(), open) {
			resp.Result = &pb.Result{}
		}
		open = open || gotNoAnswer(err)
		if err == nil {
			s.noteVersion(resp.Result.GetAttr())
			s.means.done(req.Operation, resp.Result, "", s.opt.Cluster.Now())
		}
		if k := fault.Kind(resp.GetResult().GetKind()); err == nil && (k == fault.Stale || k == fault.NotFound || k == fault.Again) {
			err = fault.E(k, "calls.eventually", "", resp.Result.Message) // a side may have it
			if k == fault.NotFound && mayLack {
				err = errLacksName
			}
		}
		return err
	}
	aside := func(ctx context.Context, nodes []ids.Node) (err error) {
		resp, by, err = s.aside(ctx, slice, req, body, nodes, &open)
		return err
	}
	if create := req.Operation.GetCreate(); create != nil && create.Object == 0 && len(s.opt.Cluster.KeepSides([]ids.Node{s.activeOf(slice)})) > 0 {
		create.Object = uint64(tree.SideObject(slice, rand.Uint64())) // whoever makes it, it is one object
	}
	switch appends := req.Operation.GetCommit().GetAppend(); {
	case appends && !s.opt.Router.IsAway(slice):
		return atActive(ctx)
	case !appends && !mayBeAside(req.Operation):
		aside = nil
	}
	if aside != nil && s.isAside(ctx, req.Operation) {
		// What was done to them is not at the active yet: this comes behind it.
		s.setBase(req.Operation)
		if mayLack := s.setNames(ctx, req.Operation, true); !mayLack && req.Operation.SideBase == 0 && len(req.Operation.NameWas)+len(req.Operation.NewNameWas) == 0 {
			active = nil // it cannot tell whether it has all of that
		}
		err = s.opt.Router.Aside(ctx, slice, active, aside)
	} else {
		err = s.opt.Router.Otherwise(ctx, slice, active, aside)
	}
	if fault.Is(err, fault.NotActive) || fault.Is(err, fault.Unreachable) {
		err = &fault.Error{Kind: fault.TimedOut, Op: "calls.eventually", Cause: err} // it is not for a program to hear
	}
	return resp, by, err
}

// activeOf is the node that acts for a slice, as far as is known.
func (s *Sender) activeOf(slice ids.Slice) ids.Node {
	row, _ := s.opt.Router.Known(slice)
	return row.Active
}

// IsAway reports whether the active of a slice did not answer a moment ago.
func (s *Sender) IsAway(slice ids.Slice) bool { return s.opt.Router.IsAway(slice) }

// gotNoAnswer reports whether a node may have done what it was sent, for all that is known.
func gotNoAnswer(err error) bool {
	return fault.Is(err, fault.TimedOut) || fault.Is(err, fault.Canceled)
}

// isDone reports whether a node that answers so says that an earlier attempt, which got
// no answer, was done: another node removed the name, and this one has heard of it. A move
// of which that is so says that it is done.
func isDone(op *pb.Operation, r *pb.Result, open bool) bool {
	return open && op.GetUnlink().GetObject() != 0 && fault.Kind(r.GetKind()) == fault.NotFound
}

// aside runs an operation at the first of some nodes that does it. Each gets two thirds of
// the time that is left. It sets open where one may have done it, and did not answer.
func (s *Sender) aside(ctx context.Context, slice ids.Slice, req *pb.OperateRequest, body [][]byte, nodes []ids.Node, open *bool) (*pb.OperateResponse, ids.Node, error) {
	nodes = s.opt.Cluster.KeepSides(nodes)
	s.setBase(req.Operation)
	mayLack := s.setNames(ctx, req.Operation, false)
	number := s.sides.Add(1)
	var err error = fault.E(fault.Unreachable, "calls.aside", "", "no node with a copy of the slice keeps side logs")
	for _, n := range nodes {
		left := time.Minute
		if end, ok := ctx.Deadline(); ok {
			left = time.Until(end)
		}
		part, cancel := context.WithTimeout(ctx, left*2/3)
		resp := &pb.OperateResponse{}
		side := &pb.OperateRequest{Slice: uint32(slice), Client: s.opt.Cluster.Client(), Number: number, Principal: req.Principal, Operation: req.Operation,
			Hlc: req.Hlc, Tickets: req.Tickets}
		buffer, e := s.opt.Cluster.Call(part, n, wire.Operation, method.Side, side, body, resp)
		buffer.Release()
		late := part.Err() != nil && ctx.Err() == nil
		cancel()
		if late {
			s.opt.Cluster.Avoid(n)
		}
		if e == nil && fault.Kind(resp.Result.GetKind()) == fault.TimedOut {
			return nil, "", fault.E(fault.NotActive, "calls.aside", "", resp.Result.Message)
		}
		if isDone(req.Operation, resp.Result, *open) {
			resp.Result = &pb.Result{}
		}
		*open = *open || gotNoAnswer(e)
		if e == nil && mayLack && fault.Kind(resp.Result.GetKind()) == fault.NotFound {
			e = errLacksName
		}
		if e == nil {
			for _, o := range doubted(req.Operation, resp.Result) {
				s.opt.Names.Forget(o) // nothing is known of what the side wrote but from the side
			}
			s.noteAside(n, req.Operation, resp.Result)
			s.means.done(req.Operation, resp.Result, n, s.opt.Cluster.Now())
			s.noteVersion(resp.Result.GetAttr())
			return resp, n, nil
		}
		if err = e; !mayGoOn(e) || ctx.Err() != nil {
			break
		}
	}
	return nil, "", err
}

// mayGoOn reports whether another node may do what one did not.
func mayGoOn(err error) bool {
	switch fault.KindOf(err) {
	case fault.TimedOut, fault.Canceled, fault.Unreachable, fault.NotActive, fault.Overloaded, fault.Again, fault.NotSupported:
		return true
	}
	return false
}

// doubted are the objects that an operation names, and the one that it is about.
func doubted(op *pb.Operation, r *pb.Result) (out []ids.Object) {
	for _, o := range method.Names(op) {
		out = append(out, ids.Object(o))
	}
	if o := ids.Object(r.GetAttr().GetObject()); o != 0 {
		out = append(out, o)
	}
	return out
}
