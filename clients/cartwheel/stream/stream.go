// Package stream sends what a client did by itself to names and attributes in
// directories that are exclusively its own. Its operations are shown here at once
// and follow to the active of their slice in their order, many in one batch. For
// each slice one batch is on its way at a time, so that what the active has is
// always a prefix of what was done. Whoever asks an active about one of their
// objects waits for them first. The package decides nothing about leases, and
// publishes no files; package deferred does. A Stream is safe for use by many
// goroutines; its mutex is held over no call but the check that Append is given.
package stream

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/pb"
)

const (
	// maxOperations bounds the operations that wait where Options say nothing else.
	maxOperations = 8192
	// linger is how long operations gather that nobody waits for.
	linger = 20 * time.Millisecond
	// batched bounds one batch, and is how many are sent without lingering.
	batched = 2048
	// batchBytes bounds the bytes of files that go along in a batch. The entry has
	// each file once, because the answer leaves out what was sent.
	batchBytes = 1 << 20
	// soberFor is for how long operations are done at their active, so that programs
	// hear of what fails, after one was refused.
	soberFor = 5 * time.Second
	// maxRefused bounds the directories whose refusals wait to be told of.
	maxRefused = 1024
)

// Options set up a Stream. Only Limit may be missing.
type Options struct {
	Limit   int             // operations that wait, half of them of one slice, before calls do; 0: 8,192
	Context context.Context // ends with the client
	Names   *names.Cache
	Clock   boottime.Func
	Logger  *slog.Logger
	// Send sends one batch, or one operation.
	Send func(context.Context, calls.Operation) (*pb.OperateResponse, ids.Node, error)
	// PublishFile tells the active of a file that was made here.
	PublishFile func(context.Context, *pending.File) error
	// Doubt forgets objects whose state is not known.
	Doubt func(...ids.Object)
	// Reserve is how many object IDs of a slice are to be asked for, and Got takes
	// those that came.
	Reserve func(ids.Slice) uint32
	Got     func(*pb.Result)
	// Spawn runs a function, unless the client ends: then it returns false.
	// UntilKnown is the context of what no caller waits for.
	Spawn      func(func()) bool
	UntilKnown func(context.Context) (context.Context, context.CancelFunc)
}

// Op is one operation. Its fields do not change once it is in a Stream.
type Op struct {
	Op *pb.Operation
	// Then is run right behind it; nil: nothing.
	Then      *pb.Operation
	Body      [][]byte // the bytes that Op's extents name
	Principal *pb.Principal
	Level     uint32
	// Name is what a person would call it.
	Name string
	// Dir is the directory that hears of a refusal. Touches are the objects and
	// directories that the operation changes, makes or removes, Dir among them; all
	// are in one slice.
	Dir     ids.Object
	Touches []ids.Object
	Made    ids.Object // the object that it makes; 0: none
	// Files were made here before, and their active must know of them first.
	Files []*pending.File

	since time.Duration // boot time
	at    uint64        // its place in the stream
	done  chan struct{}
	// Set before done is closed.
	err error
	got Got
}

// Got is what came with the answer to an operation that was done.
type Got struct {
	Result  *pb.Result // with the serial of its batch
	Receipt *pb.Receipt
	By      ids.Node
}

// Got returns what came with the answer, after Wait.
func (o *Op) Got() Got { return o.got }

// Wait returns what came of the operation, once its active has it. Where ctx ends
// first, that is not known.
func (o *Op) Wait(ctx context.Context) error {
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		return calls.OutcomeOpen(&fault.Error{Kind: fault.Canceled, Op: "stream.Wait", Subject: o.Name, Cause: context.Cause(ctx)})
	}
}

// queue is the stream of one slice.
type queue struct {
	ops    []*Op // in their order; the first ones may be on their way
	wanted uint64
	wake   chan struct{}
}

// Stream is the streams of all slices.
type Stream struct {
	opt   Options
	most  int
	count atomic.Int64 // of all operations, so that asking costs nothing where there is none
	sent  atomic.Uint64
	sober atomic.Int64

	mu      sync.Mutex // guards below
	room    *sync.Cond
	queues  map[ids.Slice]*queue // those with operations; each has a goroutine
	last    map[ids.Object]*Op   // that touches an object
	made    map[ids.Object]bool  // that operations here make
	at      uint64
	refused map[ids.Object]error // by directory
	lost    []*Op                // that waited when the client ended
}

// New returns a Stream without operations.
func New(o Options) *Stream {
	s := &Stream{opt: o, most: o.Limit, queues: map[ids.Slice]*queue{}, last: map[ids.Object]*Op{}, made: map[ids.Object]bool{},
		refused: map[ids.Object]error{}}
	if s.most == 0 {
		s.most = maxOperations
	}
	s.room = sync.NewCond(&s.mu)
	return s
}

// Len is how many operations are not known to their actives.
func (s *Stream) Len() int { return int(s.count.Load()) }

// Sent is how many operations actives took.
func (s *Stream) Sent() uint64 { return s.sent.Load() }

// IsSober reports whether operations are to be done at their actives, because one
// was refused a moment ago.
func (s *Stream) IsSober() bool { return s.sober.Load() > int64(s.opt.Clock()) }

// Append takes an operation in if check, under the mutex, agrees: so that whoever
// makes check fail from now on finds in the Stream all that it agreed to before. It
// waits for room as long as ctx says.
func (s *Stream) Append(ctx context.Context, o *Op, check func() bool) bool {
	return !s.IsSober() && s.append(ctx, o, check)
}

// AddFile takes the create of a file in that is made here already, whatever was
// refused a moment ago; note runs under the mutex. It refuses a file that an
// operation in the Stream waits for: that is to be sent at once.
func (s *Stream) AddFile(ctx context.Context, f *pending.File, o *Op, note func()) bool {
	return s.append(ctx, o, func() bool {
		if f.Needed {
			return false
		}
		f.InStream = true
		note()
		return true
	})
}

// needLocked notes the files that an operation waits for, with mu held. Those that
// are in the Stream are ahead of it.
func (o *Op) needLocked() {
	o.Files = slices.DeleteFunc(o.Files, func(f *pending.File) bool {
		f.Needed = f.Needed || !f.InStream
		return f.InStream
	})
}

func (s *Stream) append(ctx context.Context, o *Op, check func() bool) bool {
	if s.opt.Context.Err() != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { s.mu.Lock(); s.room.Broadcast(); s.mu.Unlock() })
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.fullLocked(o.Dir.Slice()) {
		if ctx.Err() != nil || s.opt.Context.Err() != nil {
			return false
		}
		s.wantAll()
		s.room.Wait()
	}
	if !check() {
		return false
	}
	o.needLocked()
	s.addLocked(o)
	return true
}

// fullLocked reports whether a slice's operations wait, with mu held. A slice that
// does not answer gets half of the room.
func (s *Stream) fullLocked(slice ids.Slice) bool {
	q := s.queues[slice]
	return int(s.count.Load()) >= s.most || q != nil && len(q.ops) >= max(s.most/2, 1)
}

// addLocked puts an operation behind the others of its slice, with mu held.
func (s *Stream) addLocked(o *Op) {
	s.at++
	o.at, o.since, o.done = s.at, s.opt.Clock(), make(chan struct{})
	for _, t := range o.Touches {
		s.last[t] = o
	}
	if o.Made != 0 {
		s.made[o.Made] = true
	}
	s.count.Add(1)
	slice := o.Dir.Slice()
	q := s.queues[slice]
	if q == nil {
		q = &queue{wake: make(chan struct{}, 1)}
		s.queues[slice] = q
		if !s.opt.Spawn(func() { s.run(slice, q) }) {
			q.ops = append(q.ops, o)
			s.abandonLocked(slice, q)
			return
		}
	}
	if q.ops = append(q.ops, o); len(q.ops) == batched {
		q.rouse()
	}
}

// rouse has the queue's goroutine look again.
func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// want has operations sent at once, up to one of them.
func (q *queue) want(at uint64) {
	if q.wanted < at {
		q.wanted = at
		q.rouse()
	}
}

func (s *Stream) wantAll() {
	for _, q := range s.queues {
		q.want(s.at)
	}
}

// Touches reports whether an operation on an object, or on names of a directory,
// is not known to its active.
func (s *Stream) Touches(o ids.Object) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[o] != nil
}

// Makes reports whether an object is made by an operation that its active does not
// know of.
func (s *Stream) Makes(o ids.Object) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[o]
}

// Flush returns when the active has, or has refused, every operation on these
// objects and on names of these directories, or when ctx ends. Refusal tells what
// was refused.
func (s *Stream) Flush(ctx context.Context, list ...ids.Object) error {
	if s.count.Load() == 0 {
		return nil
	}
	for _, o := range list {
		s.mu.Lock()
		op := s.last[o]
		s.wantOp(op)
		s.mu.Unlock()
		if op == nil {
			continue
		}
		if err := op.Wait(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func (s *Stream) wantOp(o *Op) {
	if o == nil {
		return
	}
	if q := s.queues[o.Dir.Slice()]; q != nil {
		q.want(o.at)
	}
}

// Newest returns the last operation of a slice that its active does not know of,
// or nil.
func (s *Stream) Newest(slice ids.Slice) *Op {
	if s.count.Load() == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[slice]; q != nil && len(q.ops) > 0 {
		return q.ops[len(q.ops)-1]
	}
	return nil
}

// Await has an operation sent, and returns what came of it.
func (s *Stream) Await(ctx context.Context, o *Op) error {
	s.mu.Lock()
	s.wantOp(o)
	s.mu.Unlock()
	return o.Wait(ctx)
}

// FlushSlice returns when the active of a slice has, or has refused, all operations
// there, or that this is not known: ctx ended, or the client. Refusal tells what was
// refused.
func (s *Stream) FlushSlice(ctx context.Context, slice ids.Slice) error {
	o := s.Newest(slice)
	if o == nil {
		return nil
	}
	if err := s.Await(ctx, o); calls.IsUnknown(err) {
		return err
	}
	return nil
}

// FlushAll is FlushSlice for every slice.
func (s *Stream) FlushAll(ctx context.Context) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	var list []*Op
	for _, q := range s.queues {
		if len(q.ops) > 0 {
			list = append(list, q.ops[len(q.ops)-1])
		}
	}
	s.wantAll()
	s.mu.Unlock()
	for _, o := range list {
		_ = o.Wait(ctx) // likewise
	}
}

// Waiting lists the operations that their actives do not know of, in no order of
// slices.
func (s *Stream) Waiting() (list []*Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list = slices.Clone(s.lost)
	for _, q := range s.queues {
		list = append(list, q.ops...)
	}
	return list
}

// Refusal returns why an operation on names of a directory, or on attributes of
// what is in it, was refused, once.
func (s *Stream) Refusal(dir ids.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refused[dir]
	delete(s.refused, dir)
	return err
}
