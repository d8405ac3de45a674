// Package intents runs operations over several slices as their coordinator, and
// finishes those that another coordinator left. Package tree says what the steps
// are and what follows from their answers; this one carries them out, here or at
// the node that acts for a slice. A Runner is safe for concurrent use.
package intents

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/cost"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// StepTimeout bounds one step, unless Options says otherwise. A coordinator that
// cannot reach a participant leaves the intent to be finished later.
const StepTimeout = 5 * time.Second

// Loop is what a Runner asks of the node's loop.
type Loop interface {
	Published(ids.Slice) *operate.Published
	// Ask runs a function between two turns of the loop, and waits for it.
	Ask(context.Context, func(*replica.Node, replica.Time)) error
	// Uncommitted reports whether an operation that is not committed yet changes
	// one of the keys.
	Uncommitted(ctx context.Context, id ids.Slice, keys ...[]byte) (bool, error)
}

// Caller calls other nodes.
type Caller interface {
	Call(ctx context.Context, peer string, class wire.Class, method wire.Method,
		request proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error)
}

// Sessions are the clients' sessions with this node.
type Sessions interface {
	// Shared waits until no other session has one of the directories exclusively,
	// which stays so until end is called.
	Shared(ctx context.Context, session uint64, dirs ...ids.Object) (end func(), err error)
}

// Options are what a Runner is made of. Every field is needed.
type Options struct {
	Self     ids.Node
	Loop     Loop
	Host     Caller
	Sessions Sessions
	Cost     *cost.Counter
	// Committed is what this node's own copy of a slice shows.
	Committed func(ids.Slice) tree.View
	// Propose runs an internal operation at a slice that this node acts for; with
	// client and number it decides that operation.
	Propose func(ctx context.Context, id ids.Slice, op *pb.Operation, client, number uint64) (operate.Answer, error)
	// Row returns a slice's row, Leading those of the slices that this node acts
	// for.
	Row     func(ids.Slice) (geoconfig.SliceRow, bool)
	Leading func() []geoconfig.SliceRow
	// StepTimeout bounds one step, and how long intents that were left stay
	// unfinished.
	StepTimeout time.Duration
	Clock       func() time.Duration
	Wall        func() time.Time
	HLC         *hlc.Clock
	Random      func() uint64
	// Go runs a function on a goroutine that ends with the node.
	Go     func(func(context.Context))
	Logger *slog.Logger
}

// Runner owns the intents that this process runs, and what its sweeps found.
type Runner struct {
	o     Options
	queue chan ids.Slice // slices whose open intents are to be finished
	lanes lanes          // what sweeps found and is being settled
	// swept is where the next sweep goes on in the slices led here; Run's alone.
	swept map[ids.Slice]map[tree.Duty]ids.Object

	mu  sync.Mutex // guards below
	own map[tree.Intent]bool
	// under are the client operations under way, with those that wait for them: a
	// retry joins the first attempt.
	under map[clientOperation][]func(operate.Answer)
	seen  map[tree.Intent]sighting
	round uint64 // of sweeps
}

// queueLimit bounds the slices that wait to be resumed; the next sweep finds
// those that have no room.
const queueLimit = 1024

// New returns a runner without intents.
func New(o Options) *Runner {
	return &Runner{o: o, queue: make(chan ids.Slice, queueLimit), own: map[tree.Intent]bool{}, seen: map[tree.Intent]sighting{},
		lanes: lanes{busy: map[lane]bool{}}, swept: map[ids.Slice]map[tree.Duty]ids.Object{},
		under: map[clientOperation][]func(operate.Answer){}}
}

// Remembered returns how many intents sweeps remember the age of, for tests.
func (r *Runner) Remembered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
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

// Start runs an operation whose evaluation answered Across, and calls done with
// its answer. It does not wait. A repeated operation joins the first attempt.
func (r *Runner) Start(op *operate.Operation, done func(operate.Answer)) {
	key := clientOperation{op.Slice, op.Client, op.Number}
	r.mu.Lock()
	waiting, under := r.under[key]
	r.under[key] = append(waiting, done)
	r.mu.Unlock()
	if under {
		return
	}
	r.o.Go(func(ctx context.Context) {
		var a operate.Answer
		if r.finishFormer(ctx, op) {
			a = r.coordinate(ctx, op)
		} else {
			a = r.unfinished(op)
		}
		r.mu.Lock()
		waiting := r.under[key]
		delete(r.under, key)
		r.mu.Unlock()
		for _, done := range waiting {
			done(a)
		}
	})
}

// finishFormer finishes the intents that earlier attempts began for the same
// operation, so that it is not run twice. It reports whether the outcome of each
// is known: otherwise the operation must not be run now.
func (r *Runner) finishFormer(ctx context.Context, op *operate.Operation) bool {
	open, err := tree.OpenIntents(r.o.Committed(op.Slice))
	if err != nil {
		return false
	}
	for _, o := range open {
		if o.Client != op.Client || o.Number != op.Number {
			continue
		}
		if !r.end(ctx, op.Slice, o) && !o.Decided && !o.GivenUp {
			return false
		}
	}
	return true
}

// end brings an intent that a coordinator left to its end, and reports whether
// it got there. Another goroutine that runs the intent is left to it.
func (r *Runner) end(ctx context.Context, slice ids.Slice, o tree.OpenIntent) bool {
	if !r.claim(o.Intent) {
		return false
	}
	defer r.forget(o.Intent)
	k := tree.Resume(tree.Context{Slice: slice, Node: r.o.Self, Time: r.o.HLC.Now()}, o)
	r.drive(ctx, k, nil, k.Done)
	if !k.Overruled() {
		return k.Ended()
	}
	open, err := tree.OpenIntents(r.o.Committed(slice))
	if err != nil {
		return false
	}
	for _, now := range open {
		if now.Intent == o.Intent && now.Decided {
			k = tree.Resume(tree.Context{Slice: slice, Node: r.o.Self, Time: r.o.HLC.Now()}, now)
			r.drive(ctx, k, nil, k.Done)
		}
	}
	return true
}

// coordinate runs an operation as its coordinator, unless it was done before.
func (r *Runner) coordinate(ctx context.Context, op *operate.Operation) operate.Answer {
	if a, done := r.settled(ctx, op); done {
		return a
	}
	k := tree.NewCoordinator(tree.Context{Slice: op.Slice, Node: r.o.Self, Client: op.Client, Number: op.Number,
		Time: r.o.HLC.Now(), Principal: op.Principal, Trusted: op.Trusted}, op.Op)
	spent := r.drive(ctx, k, op, k.Told)
	result := k.Result()
	if !k.Done() { // nobody waits for the rest; if it is not done, a sweep does it
		r.o.Go(func(ctx context.Context) { r.drive(ctx, k, op, k.Done) })
	}
	if result == nil {
		return operate.Answer{Err: fault.E(fault.TimedOut, "intents.coordinate", "", "the operation was not finished")}
	}
	if undecided(fault.Kind(result.Kind)) {
		return r.unfinished(op)
	}
	return operate.Answer{Result: result, Epoch: op.Epoch, Time: uint64(r.o.HLC.Last()), Cost: spent}
}

// unfinished makes the client ask again under the operation's number.
func (r *Runner) unfinished(op *operate.Operation) operate.Answer {
	row, _ := r.o.Row(op.Slice)
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

// claim marks an intent that is about to be resumed, unless this process runs
// it already.
func (r *Runner) claim(id tree.Intent) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own[id] && !plant.On(plant.IntentAbortsOpen) {
		return false
	}
	r.own[id] = true
	return true
}

// note marks an intent as run by this process, so that nobody resumes it.
func (r *Runner) note(id tree.Intent) {
	if id == 0 {
		return
	}
	r.mu.Lock()
	r.own[id] = true
	r.mu.Unlock()
}

func (r *Runner) forget(id tree.Intent) {
	r.mu.Lock()
	delete(r.own, id)
	delete(r.seen, id)
	r.mu.Unlock()
}
