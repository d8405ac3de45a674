package calls

import (
	"context"
	"errors"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
)

// Operation is an operation for the active of a slice.
type Operation struct {
	Slice     ids.Slice
	Principal *pb.Principal
	Op        *pb.Operation
	Body      [][]byte
	Level     uint32 // how many acknowledgements are waited for
	// Held sends it to the standbys too; nil: not. Where the answer is Early, the active
	// has told nothing of what was made.
	Held *route.Held
}

// Operate runs an operation exactly once, after what it depends on is published. A
// failure that the active decided has its kind. After any other the outcome may be
// unknown: see IsUnknown.
func (s *Sender) Operate(ctx context.Context, o Operation) (*pb.OperateResponse, ids.Node, error) {
	s.opt.Deferred.PublishFor(ctx, o.Op)
	return s.Publish(ctx, o)
}

// Publish is Operate for an operation that itself publishes a file: it waits for
// no other.
func (s *Sender) Publish(ctx context.Context, o Operation) (*pb.OperateResponse, ids.Node, error) {
	const op fault.Op = "calls.Publish"
	if o.Op.TimeNs == 0 {
		o.Op.TimeNs = s.opt.Wall().UnixNano()
	}
	req := &pb.OperateRequest{Principal: o.Principal, Operation: o.Op, SyncLevel: o.Level, Hlc: uint64(s.opt.HLC.Last()),
		Tickets: s.opt.Tickets.With(method.Names(o.Op)...)}
	// Sent again, it stays under the session under which it was sent first: what
	// was written under a lock that went with that session is refused.
	under := map[ids.Node]uint64{}
	atActive := func(ctx context.Context) (*pb.OperateResponse, ids.Node, error) {
		return s.opt.Operator.OperateHeld(ctx, o.Slice, req, o.Body, func(node ids.Node) uint64 {
			if !method.Any(o.Op, func(p *pb.Operation) bool { return p.GetCommit() != nil }) || under[node] == 0 {
				under[node] = s.opt.Sessions.With(ctx, node)
			}
			return under[node]
		}, o.Held)
	}
	run := atActive
	if timeouts.Eventual(ctx) {
		run = func(ctx context.Context) (*pb.OperateResponse, ids.Node, error) {
			return s.eventually(ctx, o.Slice, req, o.Body, atActive)
		}
	}
	resp, by, err := run(ctx)
	if err != nil {
		return nil, by, OutcomeOpen(err)
	}
	if k := fault.Kind(resp.Result.GetKind()); k != fault.None {
		return nil, by, fault.E(k, op, "", resp.Result.Message)
	}
	fillSent(o.Op, o.Body, resp.Result)
	if timeouts.Eventual(ctx) {
		s.rememberOwn(o.Op, resp.Result)
	}
	if r := resp.Result; s.opt.Tickets.IsUser() {
		for _, a := range []*pb.Attr{r.GetAttr(), r.GetDir(), r.GetNewDir()} {
			s.opt.Tickets.Learn(a)
		}
		for _, part := range r.GetResults() {
			s.opt.Tickets.Learn(part.GetAttr())
		}
	}
	return resp, by, nil
}

// outcome is a marked error.
type outcome struct{ error }

func (o *outcome) Unwrap() error { return o.error }

// OutcomeOpen marks an error that no active decided: after those kinds of it that
// IsUnknown names, the operation may have been done.
func OutcomeOpen(err error) error { return &outcome{err} }

// IsUnknown reports whether an operation that failed may have been done.
func IsUnknown(err error) bool {
	var o *outcome
	if !errors.As(err, &o) {
		return false
	}
	switch fault.KindOf(err) {
	case fault.TimedOut, fault.Canceled, fault.Expired, fault.Other, fault.Unreachable, fault.IO, fault.Corrupt, fault.Again, fault.Overloaded:
		return true
	}
	return false
}

// Change runs an operation on one object and learns the attributes that it
// answers. The operation's slice is the object's.
func (s *Sender) Change(ctx context.Context, o ids.Object, run Operation) (*pb.Attr, error) {
	mark := s.opt.Names.MarkChange(o)
	run.Slice = o.Slice()
	resp, by, err := s.Operate(ctx, run)
	if err != nil {
		if IsUnknown(err) {
			s.opt.Doubt(o)
		}
		return nil, err
	}
	a := resp.Result.Attr
	if a == nil {
		return nil, fault.E(fault.Corrupt, "calls.Change", o.String(), "the answer has no attributes")
	}
	s.Learn(&mark, by, resp, a)
	return a, nil
}

// Learn takes the attributes that an operation of this client left behind. The
// kernel's pages stay good where no other client can have changed the file since.
func (s *Sender) Learn(mark *names.Mark, by ids.Node, resp *pb.OperateResponse, a *pb.Attr) {
	o := ids.Object(a.Object)
	old, _, known := s.opt.Names.Attr(o)
	s.opt.Names.Learn(mark, by, resp.Grants, func(l *names.Learner) { l.Attr(a, false) })
	if known && old.Version != a.Version {
		s.opt.AdvancePages(o, old.Version, a.Version)
	}
	s.opt.Receipts.Note(o, resp.Receipt)
}
