package requests

import (
	"context"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Sides answers for side logs. Every field is needed, and none changes.
type Sides struct {
	// Operations knows what a client may name.
	Operations *Operations
	Self       ids.Node
	Site       ids.Site
	// Operate does an operation at this side, and Here does it at this node.
	Operate, Here func(context.Context, *operate.Operation) (*pb.Result, error)
}

// Side does an operation of a client whose active is away from it, or one that another
// node took from such a client.
func (s *Sides) Side(ctx context.Context, r *wire.Request) {
	var req pb.OperateRequest
	o := s.Operations
	w, err := o.Access.Caller(r.Peer)
	if err == nil {
		err = r.Decode(&req)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	if w.Node {
		op, err := passed(&req, r.Body())
		if err == nil {
			result, e := s.Here(ctx, op)
			if err = e; err == nil {
				r.Reply(&pb.OperateResponse{Result: result, Hlc: uint64(o.HLC.Last())})
				return
			}
		}
		r.Fail(err)
		return
	}
	out, err := s.side(ctx, w, &req, r.Body())
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(out)
}

// side does a client's operation once it is known what it may name.
func (s *Sides) side(ctx context.Context, w *identity.Who, req *pb.OperateRequest, body []byte) (*pb.OperateResponse, error) {
	o := s.Operations
	op, who, err := o.operation(w, req)
	if err == nil {
		if unproven := o.Access.Unproven(who, req); unproven != nil {
			err = o.Access.Check(ctx, who, unproven)
		}
	}
	if err != nil {
		return nil, err
	}
	op.Body = body
	result, err := s.Operate(ctx, op)
	if err != nil {
		return nil, err
	}
	result = proto.CloneOf(result) // tickets are the caller's own
	out := &pb.OperateResponse{Result: result, Hlc: uint64(o.HLC.Last()),
		Receipt: &pb.Receipt{Nodes: []string{string(s.Self)}, Sites: []string{string(s.Site)}, Serial: result.Serial}}
	o.Access.SealMade(op.Client, op.Op, out.Result, o.HLC.Last())
	o.Access.StampResult(who, out.Result)
	return out, nil
}

// passed is an operation that another node has checked.
func passed(req *pb.OperateRequest, body []byte) (*operate.Operation, error) {
	if req.Operation == nil || req.Slice == 0 || req.Client == 0 {
		return nil, fault.E(fault.Invalid, "requests.passed", "", "the request names no operation, no slice or no client")
	}
	p := req.Principal
	return &operate.Operation{Slice: ids.Slice(req.Slice), Client: req.Client, Number: req.Number, Op: req.Operation, Body: body, Trusted: req.Trusted, User: req.User,
		Principal: tree.Principal{UID: p.GetUid(), GID: p.GetGid(), Groups: p.GetGroups()}, OnlyMade: !req.Trusted}, nil
}

// Merge has an operation of this node's own done, once no client is alone in the
// directories that it names.
func (s *Operations) Merge(ctx context.Context, op *operate.Operation) (operate.Answer, error) {
	const name fault.Op = "requests.Merge"
	var mark uint64
	answered := make(chan operate.Answer, 1)
	op.Internal, op.Trusted = true, true
	op.Done = func(_ *operate.Operation, a operate.Answer) {
		s.Sharing.Changed(mark)
		answered <- a
	}
	s.orderShared(op, &mark)
	select {
	case a := <-answered:
		if a.Refused != nil {
			return a, fault.E(fault.Kind(a.Refused.Kind), name, "", a.Refused.Why)
		}
		return a, a.Err
	case <-ctx.Done():
		return operate.Answer{}, fault.Wrap(fault.TimedOut, name, "", ctx.Err())
	}
}
