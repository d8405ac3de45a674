package server

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/cost"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// intents runs operations over several slices as their coordinator, and
// finishes those that another coordinator left.
type intents struct {
	s     *Server
	queue chan ids.Slice // slices whose open intents are to be finished
	lanes lanes          // what sweeps found and is being settled
	// swept is where the next sweep goes on in the slices led here; run's alone.
	swept map[ids.Slice]map[tree.Duty]ids.Object

	mu  sync.Mutex // guards below
	own map[tree.Intent]bool
	// under are the client operations under way, with who else waits for them:
	// a retry joins the first attempt.
	under map[clientOperation][]func(operate.Answer)
	seen  map[tree.Intent]sighting
	round uint64 // of sweeps
}

// sighting is when a sweep first met an intent, and the round that met it last.
type sighting struct {
	first replica.Time
	round uint64
}

// clientOperation names one operation of a client.
type clientOperation struct {
	slice          ids.Slice
	client, number uint64
}

func newIntents(s *Server) *intents {
	return &intents{s: s, queue: make(chan ids.Slice, 1024), own: map[tree.Intent]bool{}, seen: map[tree.Intent]sighting{},
		lanes: lanes{busy: map[lane]bool{}}, swept: map[ids.Slice]map[tree.Duty]ids.Object{},
		under: map[clientOperation][]func(operate.Answer){}}
}

// sweepEvery is how often intents and marks that were left are looked for.
const sweepEvery = 5 * time.Second

// stepPatience bounds one step, unless Deps.StepPatience says otherwise; a
// coordinator that cannot reach a participant leaves the intent to be finished
// later.
const stepPatience = 5 * time.Second

// start runs an operation whose evaluation answered Across.
func (i *intents) start(op *operate.Operation, done func(operate.Answer)) {
	key := clientOperation{op.Slice, op.Client, op.Number}
	i.mu.Lock()
	waiting, under := i.under[key]
	i.under[key] = append(waiting, done)
	i.mu.Unlock()
	if under {
		return
	}
	i.s.life.spawn(func(ctx context.Context) {
		var a operate.Answer
		if i.finishFormer(ctx, op) {
			a = i.run1(ctx, op)
		} else {
			a = i.unfinished(op)
		}
		i.mu.Lock()
		waiting := i.under[key]
		delete(i.under, key)
		i.mu.Unlock()
		for _, done := range waiting {
			done(a)
		}
	})
}

// finishFormer finishes the intents that earlier attempts began for the same
// operation, so that it is not run twice. It reports whether the outcome of each
// is known: otherwise the operation must not be run now.
func (i *intents) finishFormer(ctx context.Context, op *operate.Operation) bool {
	open, err := tree.OpenIntents(operate.Committed(i.s.store.Meta(), op.Slice))
	if err != nil {
		return false
	}
	for _, o := range open {
		if o.Client != op.Client || o.Number != op.Number {
			continue
		}
		if !i.end(ctx, op.Slice, o) && !o.Decided && !o.GivenUp {
			return false
		}
	}
	return true
}

// end brings an intent that a coordinator left to its end, and reports whether
// it got there. Another goroutine that runs the intent is left to it.
func (i *intents) end(ctx context.Context, slice ids.Slice, o tree.OpenIntent) bool {
	if !i.claim(o.Intent) {
		return false
	}
	defer i.forget(o.Intent)
	k := tree.Resume(tree.Context{Slice: slice, Node: i.s.id, Time: i.s.hlc.Now()}, o)
	i.drive(ctx, k, nil, k.Done)
	if !k.Overruled() {
		return k.Ended()
	}
	open, err := tree.OpenIntents(operate.Committed(i.s.store.Meta(), slice))
	if err != nil {
		return false
	}
	for _, now := range open {
		if now.Intent == o.Intent && now.Decided {
			k = tree.Resume(tree.Context{Slice: slice, Node: i.s.id, Time: i.s.hlc.Now()}, now)
			i.drive(ctx, k, nil, k.Done)
		}
	}
	return true
}

// run1 runs an operation as its coordinator, unless it was done before.
func (i *intents) run1(ctx context.Context, op *operate.Operation) operate.Answer {
	if a, done := i.s.settled(ctx, op); done {
		return a
	}
	k := tree.NewCoordinator(tree.Context{Slice: op.Slice, Node: i.s.id, Client: op.Client, Number: op.Number,
		Time: i.s.hlc.Now(), Principal: op.Principal, Trusted: op.Trusted}, op.Op)
	spent := i.drive(ctx, k, op, k.Told)
	result := k.Result()
	if !k.Done() { // nobody waits for the rest; if it is not done, a sweep does it
		i.s.life.spawn(func(ctx context.Context) { i.drive(ctx, k, op, k.Done) })
	}
	if result == nil {
		return operate.Answer{Err: fault.E(fault.TimedOut, "server.intents", "", "the operation was not finished")}
	}
	if undecided(fault.Kind(result.Kind)) {
		return i.unfinished(op)
	}
	return operate.Answer{Result: result, Epoch: op.Epoch, Time: uint64(i.s.hlc.Last()), Cost: spent}
}

// unfinished makes the client ask again under the operation's number.
func (i *intents) unfinished(op *operate.Operation) operate.Answer {
	row, _ := i.s.directory.Slice(op.Slice)
	return operate.Answer{Refused: &operate.Refusal{Kind: uint32(fault.NotActive), Row: &row, Why: "an operation over several slices did not get through: try again"}}
}

// undecided reports whether a kind says that a step did not get through, or that
// other operations were in the way every time. Neither is an outcome of the
// operation: its client tries again, under its number.
func undecided(k fault.Kind) bool {
	switch k {
	case fault.NotActive, fault.WrongEpoch, fault.TimedOut, fault.Canceled, fault.Closed, fault.Unreachable, fault.Overloaded, fault.Again:
		return true
	}
	return false
}

// drive does a coordinator's actions until enough is done. op is nil for an
// intent that is resumed.
func (i *intents) drive(ctx context.Context, k *tree.Coordinator, op *operate.Operation, enough func() bool) (total operate.Cost) {
	for round := 0; !enough() && ctx.Err() == nil; round++ {
		if round > 0 && k.Intent() == 0 {
			i.pause(ctx, round)
		}
		actions := k.Next()
		answers, costs := make([]tree.Answer, len(actions)), make([]operate.Cost, len(actions))
		var wg sync.WaitGroup
		for n := range actions {
			wg.Add(1)
			go func() {
				defer wg.Done()
				answers[n], costs[n] = i.act(ctx, &actions[n], op)
			}()
		}
		wg.Wait()
		total = cost.Then(total, cost.Beside(costs...))
		before := k.Intent()
		k.Answer(answers)
		if before != k.Intent() { // it began again
			i.forget(before)
		}
		i.note(k.Intent())
	}
	if k.Done() || ctx.Err() != nil {
		i.forget(k.Intent())
	}
	return total
}

// pause spreads operations that met each other: the more often, the longer.
func (i *intents) pause(ctx context.Context, round int) {
	if round < 3 {
		return
	}
	span := min(time.Millisecond<<min(round, 6), 50*time.Millisecond)
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(i.s.chance.Uint64() % uint64(span))):
	}
}

// claim marks an intent that is about to be resumed, unless this process runs
// it already.
func (i *intents) claim(id tree.Intent) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.own[id] && !plant.On(plant.IntentAbortsOpen) {
		return false
	}
	i.own[id] = true
	return true
}

// note marks an intent as run by this process, so that nobody resumes it.
func (i *intents) note(id tree.Intent) {
	if id == 0 {
		return
	}
	i.mu.Lock()
	i.own[id] = true
	i.mu.Unlock()
}

func (i *intents) forget(id tree.Intent) {
	i.mu.Lock()
	delete(i.own, id)
	delete(i.seen, id)
	i.mu.Unlock()
}

// act does one action: here, or at the node that acts for its slice.
func (i *intents) act(ctx context.Context, a *tree.Action, op *operate.Operation) (out tree.Answer, total operate.Cost) {
	ctx, cancel := context.WithTimeout(ctx, i.s.deps.StepPatience)
	defer cancel()
	// Steps at the coordinator's own slice are its alone: once another node
	// acts there, that one settles the intent.
	own := a.Step != nil && (op != nil && a.Slice == op.Slice || op == nil && a.Slice == tree.Intent(a.Step.Intent).Slice())
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		var spent operate.Cost
		if own || i.s.loop.Published(a.Slice).Serves(i.s.clock()) {
			out, spent = i.here(ctx, a, op)
		} else {
			out, spent = i.there(ctx, a)
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

func (i *intents) here(ctx context.Context, a *tree.Action, op *operate.Operation) (tree.Answer, operate.Cost) {
	if a.Step == nil {
		session := uint64(0)
		if op != nil {
			session = op.Session
		}
		facts, err := i.s.facts(ctx, a.Slice, session, a.Asks)
		return tree.Answer{Facts: facts, Err: err}, operate.Cost{}
	}
	var client, number uint64
	if a.Final && op != nil {
		client, number = op.Client, op.Number
	}
	step := &pb.Operation{Op: &pb.Operation_Step{Step: a.Step}}
	got, err := operate.Propose(ctx, i.s.loop, a.Slice, step, client, number)
	spent := cost.Of(i.s.cost.Count(a.Slice, got.Cost))
	if err != nil {
		return tree.Answer{Err: err}, spent
	}
	out := stepAnswer(got.Result, got.Encoded, got.Time)
	out.Known = a.Final && got.Result == nil
	return out, spent
}

// factsBehind reads what a step was sent with questions about, for its answer;
// nothing where that cannot be read now.
func (s *Server) factsBehind(ctx context.Context, op *operate.Operation, a operate.Answer, asks []byte) []byte {
	if op.Op.GetStep() == nil || !op.Internal || a.Err != nil || a.Refused != nil || a.Result.GetKind() != 0 {
		return nil
	}
	facts, err := s.facts(ctx, op.Slice, 0, asks)
	if err != nil {
		return nil // the coordinator asks by itself, and hears why
	}
	return facts
}

func stepAnswer(result *pb.Result, encoded []byte, at uint64) tree.Answer {
	if result == nil {
		result = &pb.Result{}
		if err := proto.Unmarshal(encoded, result); err != nil {
			return tree.Answer{Err: fault.Wrap(fault.Corrupt, "server.intents", "", err)}
		}
	}
	return tree.Answer{Result: result, Time: hlc.Time(at)}
}

func (i *intents) there(ctx context.Context, a *tree.Action) (tree.Answer, operate.Cost) {
	const op fault.Op = "server.intents"
	row, ok := i.s.directory.Slice(a.Slice)
	if !ok || row.Active == i.s.id {
		return tree.Answer{Err: fault.E(fault.NotActive, op, "", "no node acts for the slice now")}, operate.Cost{}
	}
	if a.Step == nil {
		var answer pb.FactsResponse
		b, err := i.s.host.Call(ctx, string(row.Active), wire.Operation, method.Facts, &pb.FactsRequest{Slice: uint32(a.Slice), Asks: a.Asks}, nil, &answer)
		b.Release()
		if err == nil && answer.Kind != 0 {
			err = fault.E(fault.Kind(answer.Kind), op, "", "the slice's active could not answer")
		}
		return tree.Answer{Facts: answer.Facts, Err: err}, i.s.cost.Call(string(row.Active), nil)
	}
	var answer pb.OperateResponse
	req := &pb.OperateRequest{Slice: uint32(a.Slice), Operation: &pb.Operation{Op: &pb.Operation_Step{Step: a.Step}}, Hlc: uint64(i.s.hlc.Now()), Asks: a.Asks}
	b, err := i.s.host.Call(ctx, string(row.Active), wire.Operation, method.Operate, req, nil, &answer)
	b.Release()
	spent := i.s.cost.Call(string(row.Active), answer.Spent)
	switch {
	case err != nil:
		return tree.Answer{Err: err}, spent
	case answer.Refusal != nil:
		return tree.Answer{Err: fault.E(fault.Kind(answer.Refusal.Kind), op, "", answer.Refusal.Message)}, spent
	}
	return tree.Answer{Result: answer.Result, Time: hlc.Time(answer.Receipt.GetHlc()), Facts: answer.Facts}, spent
}

// settled answers an operation that was done before, as the core remembers.
func (s *Server) settled(ctx context.Context, op *operate.Operation) (operate.Answer, bool) {
	var known replica.Known
	var reply replica.Reply
	err := s.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		known, reply = core.Lookup(op.Slice, op.Client, op.Number, s.hlc.Last())
	})
	if err != nil || known != replica.Done {
		return operate.Answer{Err: err}, err != nil
	}
	return operate.Answer{Encoded: reply.Result, Serial: reply.Serial, Epoch: reply.Epoch, Time: uint64(reply.Time)}, true
}

// facts reads what a coordinator asks, while this node may act.
func (s *Server) facts(ctx context.Context, id ids.Slice, session uint64, asks []byte) ([]byte, error) {
	const op fault.Op = "server.Facts"
	if !s.loop.Published(id).Serves(s.clock()) {
		return nil, fault.E(fault.NotActive, op, "", "this node does not act for the slice now")
	}
	end, err := s.sessions.Shared(ctx, session, tree.AskedNames(asks)...)
	if err != nil {
		return nil, err
	}
	defer end()
	facts, err := tree.ReadFacts(operate.Committed(s.store.Meta(), id), asks)
	if err == nil && !s.loop.Published(id).Serves(s.clock()) {
		err = fault.E(fault.NotActive, op, "", "the lease lapsed meanwhile")
	}
	return facts, err
}

func (s *Server) factsOf(ctx context.Context, req *pb.FactsRequest) (proto.Message, error) {
	facts, err := s.facts(ctx, ids.Slice(req.Slice), 0, req.Asks)
	return &pb.FactsResponse{Facts: facts, Hlc: uint64(s.hlc.Now()), Kind: uint32(fault.KindOf(err))}, nil
}

// intent answers whether this node, as coordinator, still knows an intent:
// phase 1 if so, 0 if not.
func (s *Server) intent(_ context.Context, req *pb.IntentRequest) (proto.Message, error) {
	id := tree.Intent(req.Intent)
	if !s.loop.Published(id.Slice()).Serves(s.clock()) {
		return nil, fault.E(fault.NotActive, "server.Intent", "", "this node does not act for the slice now")
	}
	open, err := tree.IsOpen(operate.Committed(s.store.Meta(), id.Slice()), id)
	if err != nil {
		return nil, err
	}
	out := &pb.IntentResponse{}
	if open {
		out.Phase = 1
	}
	return out, nil
}
