package intents

import (
	"context"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// settled answers an operation that was done before, as the core remembers.
func (r *Runner) settled(ctx context.Context, op *operate.Operation) (operate.Answer, bool) {
	var known replica.Known
	var reply replica.Reply
	err := r.o.Loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		known, reply = core.Lookup(op.Slice, op.Client, op.Number, r.o.HLC.Last())
	})
	if err != nil || known != replica.Done {
		return operate.Answer{Err: err}, err != nil
	}
	return operate.Answer{Encoded: reply.Result, Serial: reply.Serial, Epoch: reply.Epoch, Time: uint64(reply.Time)}, true
}

// facts reads what a coordinator asks, while this node may act.
func (r *Runner) facts(ctx context.Context, id ids.Slice, session uint64, asks []byte) ([]byte, error) {
	const op fault.Op = "intents.facts"
	if !r.o.Loop.Published(id).Serves(r.o.Clock()) {
		return nil, fault.E(fault.NotActive, op, "", "this node does not act for the slice now")
	}
	named, emptied := tree.AskedNames(asks)
	end, err := r.o.Sessions.Shared(ctx, session, named...)
	if err != nil {
		return nil, err
	}
	defer end()
	// Of what goes if it is empty, the client's own changes may be on their way, too.
	endEmptied, err := r.o.Sessions.Shared(ctx, 0, emptied...)
	if err != nil {
		return nil, err
	}
	defer endEmptied()
	facts, err := tree.ReadFacts(r.o.Committed(id), asks)
	if err == nil && !r.o.Loop.Published(id).Serves(r.o.Clock()) {
		err = fault.E(fault.NotActive, op, "", "the lease lapsed meanwhile")
	}
	return facts, err
}

// FactsBehind reads what a step was sent with questions about, for its answer;
// nothing where that cannot be read now.
func (r *Runner) FactsBehind(ctx context.Context, op *operate.Operation, a operate.Answer, asks []byte) []byte {
	if op.Op.GetStep() == nil || !op.Internal || a.Err != nil || a.Refused != nil || a.Result.GetKind() != 0 {
		return nil
	}
	facts, err := r.facts(ctx, op.Slice, 0, asks)
	if err != nil {
		return nil // the coordinator asks by itself, and hears why
	}
	return facts
}

// Facts answers another coordinator's questions, with the kind of the fault where
// this node cannot.
func (r *Runner) Facts(ctx context.Context, req *pb.FactsRequest) (proto.Message, error) {
	facts, err := r.facts(ctx, ids.Slice(req.Slice), 0, req.Asks)
	return &pb.FactsResponse{Facts: facts, Hlc: uint64(r.o.HLC.Now()), Kind: uint32(fault.KindOf(err))}, nil
}

// Intent answers whether this node, as coordinator, still knows an intent:
// phase 1 if so, 0 if not.
func (r *Runner) Intent(_ context.Context, req *pb.IntentRequest) (proto.Message, error) {
	id := tree.Intent(req.Intent)
	if !r.o.Loop.Published(id.Slice()).Serves(r.o.Clock()) {
		return nil, fault.E(fault.NotActive, "intents.Intent", "", "this node does not act for the slice now")
	}
	open, err := tree.IsOpen(r.o.Committed(id.Slice()), id)
	if err != nil {
		return nil, err
	}
	out := &pb.IntentResponse{}
	if open {
		out.Phase = 1
	}
	return out, nil
}
