package intents

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/cost"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// drive does a coordinator's actions until enough is done. op is nil for an
// intent that is resumed.
func (r *Runner) drive(ctx context.Context, k *tree.Coordinator, op *operate.Operation, enough func() bool) (total operate.Cost) {
	for round := 0; !enough() && ctx.Err() == nil; round++ {
		if round > 0 && k.Intent() == 0 {
			r.pause(ctx, round)
		}
		actions := k.Next()
		answers, costs := make([]tree.Answer, len(actions)), make([]operate.Cost, len(actions))
		var wg sync.WaitGroup
		for n := range actions {
			wg.Add(1)
			go func() {
				defer wg.Done()
				answers[n], costs[n] = r.act(ctx, &actions[n], op)
			}()
		}
		wg.Wait()
		total = cost.Then(total, cost.Beside(costs...))
		before := k.Intent()
		k.Answer(answers)
		if before != k.Intent() { // it began again
			r.forget(before)
		}
		r.note(k.Intent())
	}
	if k.Done() || ctx.Err() != nil {
		r.forget(k.Intent())
	}
	return total
}

// pause spreads operations that met each other: the more often, the longer.
func (r *Runner) pause(ctx context.Context, round int) {
	if round < 3 {
		return
	}
	span := min(time.Millisecond<<min(round, 6), 50*time.Millisecond)
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(r.o.Random() % uint64(span))):
	}
}

// act does one action: here, or at the node that acts for its slice.
func (r *Runner) act(ctx context.Context, a *tree.Action, op *operate.Operation) (out tree.Answer, total operate.Cost) {
	ctx, cancel := context.WithTimeout(ctx, r.o.StepTimeout)
	defer cancel()
	// Steps at the coordinator's own slice are its alone: once another node
	// acts there, that one settles the intent.
	own := a.Step != nil && (op != nil && a.Slice == op.Slice || op == nil && a.Slice == tree.Intent(a.Step.Intent).Slice())
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		var spent operate.Cost
		if own || r.o.Loop.Published(a.Slice).Serves(r.o.Clock()) {
			out, spent = r.here(ctx, a, op)
		} else {
			out, spent = r.there(ctx, a)
		}
		total = cost.Then(total, spent)
		kind := fault.KindOf(out.Err)
		again := !own && kind == fault.NotActive || kind == fault.WrongEpoch || kind == fault.Unreachable || kind == fault.Overloaded || kind == fault.Busy
		if !again {
			return out, total
		}
		select {
		case <-ctx.Done():
			return out, total
		case <-time.After(wait):
		}
	}
}

func (r *Runner) here(ctx context.Context, a *tree.Action, op *operate.Operation) (tree.Answer, operate.Cost) {
	if a.Step == nil {
		session := uint64(0)
		if op != nil {
			session = op.Session
		}
		facts, err := r.facts(ctx, a.Slice, session, a.Asks)
		return tree.Answer{Facts: facts, Err: err}, operate.Cost{}
	}
	var client, number uint64
	if a.Final && op != nil {
		client, number = op.Client, op.Number
	}
	step := &pb.Operation{Op: &pb.Operation_Step{Step: a.Step}}
	got, err := r.o.Propose(ctx, a.Slice, step, client, number)
	spent := cost.Of(r.o.Cost.Count(a.Slice, got.Cost))
	if err != nil {
		return tree.Answer{Err: err}, spent
	}
	out := stepAnswer(got.Result, got.Encoded, got.Time)
	out.Known = a.Final && got.Result == nil
	return out, spent
}

func (r *Runner) there(ctx context.Context, a *tree.Action) (tree.Answer, operate.Cost) {
	const op fault.Op = "intents.there"
	row, ok := r.o.Row(a.Slice)
	if !ok || row.Active == r.o.Self {
		return tree.Answer{Err: fault.E(fault.NotActive, op, "", "no node acts for the slice now")}, operate.Cost{}
	}
	if a.Step == nil {
		var answer pb.FactsResponse
		b, err := r.o.Host.Call(ctx, string(row.Active), wire.Operation, method.Facts, &pb.FactsRequest{Slice: uint32(a.Slice), Asks: a.Asks}, nil, &answer)
		b.Release()
		if err == nil && answer.Kind != 0 {
			err = fault.E(fault.Kind(answer.Kind), op, "", "the slice's active could not answer")
		}
		return tree.Answer{Facts: answer.Facts, Err: err}, r.o.Cost.Call(string(row.Active), nil)
	}
	var answer pb.OperateResponse
	req := &pb.OperateRequest{Slice: uint32(a.Slice), Operation: &pb.Operation{Op: &pb.Operation_Step{Step: a.Step}}, Hlc: uint64(r.o.HLC.Now()), Asks: a.Asks}
	b, err := r.o.Host.Call(ctx, string(row.Active), wire.Operation, method.Operate, req, nil, &answer)
	b.Release()
	spent := r.o.Cost.Call(string(row.Active), answer.Spent)
	switch {
	case err != nil:
		return tree.Answer{Err: err}, spent
	case answer.Refusal != nil:
		return tree.Answer{Err: fault.E(fault.Kind(answer.Refusal.Kind), op, "", answer.Refusal.Message)}, spent
	}
	return tree.Answer{Result: answer.Result, Time: hlc.Time(answer.Receipt.GetHlc()), Facts: answer.Facts}, spent
}
func stepAnswer(result *pb.Result, encoded []byte, at uint64) tree.Answer {
	if result == nil {
		result = &pb.Result{}
		if err := proto.Unmarshal(encoded, result); err != nil {
			return tree.Answer{Err: fault.Wrap(fault.Corrupt, "intents.stepAnswer", "", err)}
		}
	}
	return tree.Answer{Result: result, Time: hlc.Time(at)}
}
