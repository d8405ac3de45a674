// Package snapshot copies the state of a slice from one node to another: a
// Sender at a node with a whole copy, a Receiver at a junior, and a Fetcher that
// brings chunks from the slice's members. Package operate applies the log beside
// a copy; package replica decides when one is needed. Types of this package are
// safe for concurrent use; only the callbacks of Ask and Do run on the loop's
// goroutine.
package snapshot

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/repair"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/turns"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/wire"
)

const (
	// pageStall is for how long nothing may come of one page, and pageMost bounds it.
	pageStall = 20 * time.Second
	pageMost  = 5 * time.Minute
	// copyTimeout is how long no chunk may arrive while a copy wants some, and
	// how long a source may lag behind this node, or have no room to compare.
	copyTimeout = time.Minute
	// wantedPages bounds the pages whose chunks wait to be fetched.
	wantedPages = 64
	// sayEvery is how often a copy's progress is logged.
	sayEvery = 5 * time.Second
	// voidTimeout bounds the wait for the journal to say that the old state is void.
	voidTimeout = 20 * time.Second
)

// opReceive is the operation in the errors of every copy.
const opReceive fault.Op = "snapshot.Receive"

// Loop runs functions between two turns of the node's loop.
type Loop interface {
	// Ask waits until the function has run.
	Ask(context.Context, func(*replica.Node, replica.Time)) error
	// Do does not wait; it reports whether the loop takes the function.
	Do(func(*replica.Node, replica.Time)) bool
}

// Copies are the copies on their way in, as the loop applies the log to them.
// The methods are called on the loop's goroutine.
type Copies interface {
	Reset(ids.Slice, replica.EntryID)
	CopyPage(ids.Slice, operate.Page) error
	Copied(ids.Slice) (bool, error)
	CopyDone(ids.Slice, replica.Snapshot)
}

// ReceiverOptions are what a Receiver is made of. Every field is needed.
type ReceiverOptions struct {
	Loop    Loop
	Copies  Copies
	Host    Caller
	Meta    *meta.DB
	Fetcher *Fetcher
	// Claim says how urgent the copy of a slice is.
	Claim  func(ids.Slice) repair.Claim
	Clock  func() time.Duration
	Logger *slog.Logger
}

// Receiver copies slices' states to this node, one at a time. It owns whose turn it
// is; all else belongs to one copy.
type Receiver struct {
	o      ReceiverOptions
	turns  *turns.Queue
	now    atomic.Pointer[receiving] // the copy that is made; nil: none
	ranges int                       // about how many bytes of rows a range has that a source compares

	mu sync.Mutex // guards below
	// spoilt are the slices whose last copy differed from its source: the next one does not
	// build on what lies here.
	spoilt map[ids.Slice]bool
}

// NewReceiver returns a receiver that copies nothing yet.
func NewReceiver(o ReceiverOptions) *Receiver {
	return &Receiver{o: o, turns: turns.New(o.Claim, o.Clock), ranges: rangeBytes, spoilt: map[ids.Slice]bool{}}
}

func (s *Receiver) isSpoilt(id ids.Slice) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spoilt[id]
}

// spoil notes how a copy ended.
func (s *Receiver) spoil(id ids.Slice, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault.Is(err, fault.Corrupt) {
		s.spoilt[id] = true
	} else if err == nil {
		delete(s.spoilt, id)
	}
}

// Receive copies a slice's state here from the first source that sends it. It waits
// while another one is copied, and gives way to one that must not wait for it. The
// loop hears how it ended, unless ctx ends first, and asks again where it failed.
func (s *Receiver) Receive(ctx context.Context, t replica.Transfer) {
	mine, end, err := s.turns.Take(ctx, t.Slice)
	if err != nil {
		return
	}
	defer end()
	failed := false
	for _, source := range t.Sources {
		err := s.receiveFrom(mine, t.Slice, string(source), !t.Diverged && !s.isSpoilt(t.Slice))
		if err == nil || ctx.Err() != nil {
			s.turns.Note(t.Slice, false)
			return
		}
		if mine.Err() != nil {
			s.o.Logger.Info("the copy of a slice's state waits", logattr.Slice(t.Slice), logattr.Err(context.Cause(mine)))
			failed = false
			break
		}
		s.spoil(t.Slice, err)
		failed = failed || !fault.Is(err, fault.Canceled) // the slice may have been taken from this node
		s.o.Logger.Warn("a slice's state could not be copied", logattr.Slice(t.Slice), logattr.Peer(string(source)), logattr.Err(err))
	}
	if failed {
		s.turns.Note(t.Slice, true)
	}
	s.o.Loop.Do(func(core *replica.Node, now replica.Time) { core.TransferFailed(now, t.Slice) })
}

// receiveFrom copies a slice's state from one node. Pages of rows come one after
// the other, each of the moment when it was asked for, and the log is applied to
// those that are here (operate.Page). The chunks that they name are fetched
// beside. Then the copy is compared with its source, and made durable. A copy
// that begins again finds the chunks that it had got. With build, the copy takes from the
// state that lies here what is alike.
func (s *Receiver) receiveFrom(ctx context.Context, id ids.Slice, peer string, build bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &receiving{s: s, id: id, peer: peer, began: s.o.Clock(), said: s.o.Clock(), old: old{db: s.o.Meta, id: id, ranges: s.ranges}}
	s.now.Store(t)
	defer s.now.Store(nil)
	req, err := t.old.first(build)
	if err != nil {
		return err
	}
	first, body, err := t.ask(ctx, req, nil)
	if err != nil {
		return err
	}
	t.base = replica.Snapshot{Serial: ids.Serial(first.Serial), Epoch: ids.Epoch(first.Epoch), Time: hlc.Time(first.Time), Clients: first.Clients}
	if plant.On(plant.TransferForgetsResults) {
		t.base.Clients = nil
	}
	s.o.Logger.Info("a slice's state is being copied", logattr.Slice(id), logattr.Peer(peer), slog.Uint64("serial", first.Serial))
	if err := t.void(ctx, build); err != nil {
		return err
	}
	if err := t.all(ctx, first, body); err != nil {
		return err
	}
	if err := t.compare(ctx); err != nil {
		return err
	}
	if err := t.finish(ctx); err != nil {
		return err
	}
	s.spoil(id, nil)
	t.say("a slice's state was copied")
	return nil
}

// receiving is one copy on its way in.
type receiving struct {
	s     *Receiver
	id    ids.Slice
	peer  string
	base  replica.Snapshot // of the first page
	began time.Duration
	rows  atomic.Int64
	// rowBytes are those of the pages that travelled.
	rowBytes int64
	fetched  fetched
	away     away
	old      old
	said     time.Duration
}

// say logs how far the copy is.
func (t *receiving) say(what string) {
	t.said = t.s.o.Clock()
	t.s.turns.Look()
	t.s.o.Logger.Info(what, logattr.Slice(t.id), logattr.Peer(t.peer), slog.Any("rows", t.rows.Load()), slog.Any("row_bytes", t.rowBytes), slog.Any("alike", t.old.kept),
		slog.Any("chunks", t.fetched.chunks.Load()), slog.Any("bytes", t.fetched.bytes.Load()), slog.Any("took", t.said-t.began))
}

// Report tells which slices are copied to this node, and which wait for it, in the
// order in which their turns come.
func (s *Receiver) Report() []status.Copy {
	claims, running := s.turns.List()
	out := make([]status.Copy, len(claims))
	for i, c := range claims {
		out[i] = status.Copy{Slice: c.Slice, Copies: c.Copies, Level: c.Level, First: c.First, LackingNS: s.o.Clock() - c.Since}
	}
	if t := s.now.Load(); t != nil && running && out[0].Slice == t.id {
		x := &out[0]
		x.Running, x.From, x.TookNS = true, ids.Node(t.peer), s.o.Clock()-t.began
		x.Rows, x.Bytes = t.rows.Load(), t.fetched.bytes.Load()
	}
	return out
}

// ask sends a request to the source. It repeats the request while the source has
// applied less than this node, or keeps as many states as it may.
func (t *receiving) ask(ctx context.Context, req *pb.TransferRequest, behind []byte) (answer *pb.TransferResponse, body []byte, err error) {
	const shortest = 5 * time.Millisecond
	began := t.s.o.Clock()
	for wait := shortest; ; wait = min(2*wait, time.Second) {
		answer = &pb.TransferResponse{}
		call, cancel := t.s.o.Fetcher.o.Patient(ctx, t.peer, pageStall, pageMost)
		b, err := t.s.o.Host.Call(call, t.peer, wire.Chunk, method.Transfer, req, [][]byte{behind}, answer)
		cancel()
		switch {
		case err == nil:
			return answer, b.Bytes(), nil // left to the garbage collector: rows share it
		case !fault.Is(err, fault.Again) && !fault.Is(err, fault.Overloaded), t.s.o.Clock()-began > copyTimeout:
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// hold has nothing more applied than is now, and returns that serial.
func (t *receiving) hold(ctx context.Context) (applied ids.Serial, err error) {
	err = t.s.o.Loop.Ask(ctx, func(core *replica.Node, now replica.Time) { applied = core.TransferHold(now, t.id, 0) })
	return applied, err
}

// void makes void what was here, once a crash would find that it is. Its rows stay where
// the copy builds on them.
func (t *receiving) void(ctx context.Context, build bool) error {
	ctx, cancel := context.WithTimeout(ctx, voidTimeout)
	defer cancel()
	wanted := false
	var refused error
	err := t.s.o.Loop.Ask(ctx, func(core *replica.Node, now replica.Time) {
		if wanted, refused = core.TransferBegun(now, t.id, t.base); wanted {
			t.s.o.Copies.Reset(t.id, replica.EntryID{Serial: t.base.Serial, Epoch: t.base.Epoch})
		}
	})
	if err == nil {
		err = refused
	}
	if err == nil && !wanted {
		err = fault.E(fault.Canceled, opReceive, "", "the state is not wanted any more")
	}
	if err == nil {
		err = t.until(ctx, func(core *replica.Node, _ replica.Time) (bool, error) { return core.TransferReady(t.id), nil })
	}
	if err != nil {
		return err
	}
	return t.old.keep(build)
}
