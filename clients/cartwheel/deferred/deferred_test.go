package deferred

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/receipts"
	"cartwheel.dev/clients/cartwheel/stream"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

const active ids.Node = "active"

var dir, below = ids.NewObject(1, 10), ids.NewObject(1, 11)

// always is a names.Sessions whose leases are good for ever.
type always struct{}

func (always) Before() uint64 { return 0 }

func (always) Accept(ids.Node, uint64, *pb.Grant) (session.Stamp, bool) { return session.Stamp{}, true }

func (always) Left(session.Stamp) time.Duration { return time.Hour }

// fixture is a Publisher whose active is a function.
type fixture struct {
	*Publisher
	t      *testing.T
	ctx    context.Context
	end    context.CancelFunc
	names  *names.Cache
	stream *stream.Stream
	kept   receipts.Table

	mu      sync.Mutex // guards below
	answer  func(*pb.Create) error
	sent    []calls.Operation
	told    map[ids.Object]uint64 // versions
	doubted []ids.Object
	now     time.Duration
	over    bool // no goroutine starts any more
}

// newFixture returns a Publisher of a client that has two directories exclusively,
// the one in the other. Its active makes every file.
func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, told: map[ids.Object]uint64{}, names: names.New(always{}, names.Limits{}), answer: func(*pb.Create) error { return nil }}
	f.ctx, f.end = context.WithCancel(t.Context())
	spawn := func(fn func()) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.over {
			go fn()
		}
		return !f.over
	}
	f.stream = stream.New(stream.Options{
		Context: f.ctx, Names: f.names, Clock: func() time.Duration { return 0 }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Send: f.sendBatch, Doubt: func(...ids.Object) {}, Reserve: func(ids.Slice) uint32 { return 0 }, Got: func(*pb.Result) {}, Spawn: spawn,
		PublishFile: func(ctx context.Context, file *pending.File) error { return f.PublishFile(ctx, file) },
		UntilKnown:  func(context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(f.ctx) },
	})
	f.Publisher = New(Options{
		Context: f.ctx, Names: f.names, Stream: f.stream, Receipts: &f.kept, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Clock:       func() time.Duration { f.mu.Lock(); defer f.mu.Unlock(); return f.now },
		Told:        func(o ids.Object, _, version uint64) { f.mu.Lock(); defer f.mu.Unlock(); f.told[o] = version },
		SendContent: func(ids.Object) {}, FlushContent: func(context.Context, ids.Object) error { return nil },
		Send: f.send, AdvancePages: func(ids.Object, uint64, uint64) {},
		Doubt:      func(list ...ids.Object) { f.mu.Lock(); defer f.mu.Unlock(); f.doubted = append(f.doubted, list...) },
		Spawn:      spawn,
		Background: func(fn func(context.Context)) bool { return spawn(func() { fn(f.ctx) }) },
		UntilKnown: func(context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(f.ctx) },
	})
	for _, d := range []ids.Object{dir, below} {
		m := f.names.MarkDir(d)
		f.names.Learn(&m, active, []*pb.Grant{{Object: uint64(d), What: pb.Grant_NAMES}, {Object: uint64(d), What: pb.Grant_ALONE}}, func(l *names.Learner) {
			l.Complete(d)
			if d == dir {
				l.Entry(dir, "below", names.Entry{Object: below, Type: mount.TypeDir})
			}
		})
	}
	return f
}

// sendBatch is the active that gets a batch: it notes the names that are removed.
func (f *fixture) sendBatch(_ context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, o)
	r := &pb.Result{Serial: 7}
	for range o.Op.GetBatch().Operations {
		r.Results = append(r.Results, &pb.Result{})
	}
	return &pb.OperateResponse{Result: r}, active, nil
}

// send is the active.
func (f *fixture) send(_ context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error) {
	f.mu.Lock()
	f.sent = append(f.sent, o)
	answer := f.answer
	f.mu.Unlock()
	create := o.Op.GetCreate()
	if err := answer(create); err != nil {
		return nil, active, err
	}
	return &pb.OperateResponse{Receipt: &pb.Receipt{Serial: 3}, Result: &pb.Result{
		Attr: &pb.Attr{Object: create.Object, Mode: create.Mode, Nlink: 1, Parent: create.Dir, Version: 5, Change: 5},
	}}, active, nil
}

// fails has the active answer with errors, one after the other, and then make files.
func (f *fixture) fails(list ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = func(*pb.Create) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(list) == 0 {
			return nil
		}
		err := list[0]
		list = list[1:]
		return err
	}
}

// sentNames returns the names under which files were sent.
func (f *fixture) sentNames() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, o := range f.sent {
		for _, x := range o.Op.GetBatch().GetOperations() {
			out = append(out, "-"+string(x.GetUnlink().GetName()))
		}
		if o.Op.GetCreate() != nil {
			out = append(out, string(o.Op.GetCreate().GetName()))
		}
	}
	return strings.Join(out, " ")
}

// make makes a file here.
func (f *fixture) make(d ids.Object, name string, number uint64) *pending.File {
	f.t.Helper()
	o := ids.NewObject(1, number)
	file := &pending.File{Object: o, Dir: d, Name: name, Level: 1, Journal: number, Create: &pb.Create{Dir: uint64(d), Mode: mount.TypeRegular | 0o644, Object: uint64(o)}}
	a := &pb.Attr{Object: uint64(o), Mode: mount.TypeRegular | 0o644, Nlink: 1, Parent: uint64(d)}
	if !f.Add(file, func() bool { return f.names.Make(d, name, a) }) {
		f.t.Fatalf("%s cannot be made here", name)
	}
	return file
}

// remove removes a name here.
func (f *fixture) remove(d ids.Object, name string, o ids.Object) {
	f.t.Helper()
	op := &stream.Op{Op: &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(d), Name: []byte(name)}}}, Name: name, Dir: d,
		Touches: []ids.Object{d, o}}
	if file := f.Of(o); file != nil {
		op.Files = append(op.Files, file)
	}
	if !f.stream.Append(f.ctx, op, func() bool {
		return f.names.RemoveAhead(names.Removal{Dir: d, Name: name, Object: o, May: func(*pb.Attr) bool { return true }})
	}) {
		f.t.Fatalf("%s cannot be removed here", name)
	}
}

// kind is the kind of an error, None where there is none.
func kind(err error) fault.Kind {
	if err == nil {
		return fault.None
	}
	return fault.KindOf(err)
}

func failure(k fault.Kind) error { return fault.E(k, "deferred.test", "", "") }
