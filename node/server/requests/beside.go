package requests

import (
	"context"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/creates"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Members beside the active take two kinds of operations: those of side logs, and
// creates that standbys keep.

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
	op.Internal, op.Trusted = true, true
	return s.Complete(ctx, op)
}

// Creates answers for the creates that standbys keep. Every field is needed, and none
// changes.
type Creates struct {
	// Operations knows what a client may name.
	Operations *Operations
	// Keep keeps a create at this node.
	Keep func(*pb.OperateRequest, []byte) error
}

// Hold keeps a client's create at this standby, or has this active do one that another
// node keeps.
func (s *Creates) Hold(ctx context.Context, r *wire.Request) {
	var req pb.OperateRequest
	w, err := s.Operations.Access.Caller(r.Peer)
	if err == nil {
		err = r.Decode(&req)
	}
	var out *pb.OperateResponse
	body := append([]byte(nil), r.Body()...) // it is used behind the answer
	switch {
	case err != nil:
	case w.Node:
		out, err = s.complete(ctx, &req, body)
	default:
		op, who, e := s.Operations.operation(w, &req)
		if err = e; err != nil {
			break
		}
		if err = mayHold(&req); err != nil {
			break
		}
		if unproven := s.Operations.Access.Unproven(who, &req); unproven != nil {
			err = s.Operations.Access.Check(ctx, who, unproven)
		}
		if err == nil {
			out, err = &pb.OperateResponse{Early: true}, s.Keep(keepable(op, &req), body)
		}
	}
	reply(r, out, err)
}

// mayHold refuses what is no create that one operation finishes.
func mayHold(req *pb.OperateRequest) error {
	c := req.Operation.GetCreate()
	if c == nil || !c.Exclusive || !c.GetCommit().GetSeal() || c.Mode&tree.TypeMask != tree.TypeRegular || req.Epoch == 0 || req.SyncLevel != 0 {
		return fault.E(fault.Invalid, "requests.mayHold", "", "members keep only creates of write-once files with all of their content, at the epoch of the slice's row")
	}
	for _, e := range c.Commit.Extents {
		if e.GetChunk() != nil {
			return fault.E(fault.Invalid, "requests.mayHold", "", "members keep only creates that carry their content")
		}
	}
	return nil
}

// keepable is a client's request as a node keeps it and passes it on: with what the
// connection proved, and without tickets, which were checked.
func keepable(op *operate.Operation, req *pb.OperateRequest) *pb.OperateRequest {
	return &pb.OperateRequest{Slice: req.Slice, Epoch: req.Epoch, Client: op.Client, Number: req.Number, Lowest: req.Lowest, Operation: req.Operation,
		Principal: &pb.Principal{Uid: op.Principal.UID, Gid: op.Principal.GID, Groups: op.Principal.Groups}, Trusted: op.Trusted, User: op.User}
}

// complete does a create that another node keeps, under the client's number.
func (s *Creates) complete(ctx context.Context, req *pb.OperateRequest, body []byte) (*pb.OperateResponse, error) {
	if err := mayHold(req); err != nil {
		return nil, err
	}
	if req.Client == 0 || req.Number == 0 {
		return nil, fault.E(fault.Invalid, "requests.complete", "", "the request names no client or no number")
	}
	a, err := s.Operations.await(ctx, creates.Operation(req, body))
	out := &pb.OperateResponse{Hlc: uint64(s.Operations.HLC.Last())}
	if err == nil && a.Refused != nil {
		row, ok := s.Operations.Row(ids.Slice(req.Slice))
		out.Refusal = reading.Refusal(fault.Kind(a.Refused.Kind), nil, a.Refused.Why)
		if ok {
			out.Refusal = reading.Refusal(fault.Kind(a.Refused.Kind), &row, a.Refused.Why)
		}
	}
	return out, err
}

// Complete does an operation that this node has, where it acts for the slice. Another
// node's refusal has its kind.
func (s *Operations) Complete(ctx context.Context, op *operate.Operation) (operate.Answer, error) {
	a, err := s.await(ctx, op)
	if err == nil && a.Refused != nil {
		err = fault.E(fault.Kind(a.Refused.Kind), "requests.Complete", "", a.Refused.Why)
	}
	return a, err
}

// await orders an operation once no client is alone in the directories that it names,
// and waits for its answer. After TimedOut it may go on.
func (s *Operations) await(ctx context.Context, op *operate.Operation) (operate.Answer, error) {
	var mark uint64
	answered := make(chan operate.Answer, 1)
	op.Done = func(_ *operate.Operation, a operate.Answer) {
		s.Sharing.Changed(mark)
		answered <- a
	}
	s.orderShared(op, &mark)
	select {
	case a := <-answered:
		return a, a.Err
	case <-ctx.Done():
		return operate.Answer{}, fault.Wrap(fault.TimedOut, "requests.await", "", ctx.Err())
	}
}
