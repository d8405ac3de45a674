// Package operate is the heart of a node: the one goroutine that owns the
// replica core and proposes every operation. It drains whatever is queued,
// steps the core for each input, and then carries out the outputs once: one
// journal append, one frame for each peer, one metadata batch, then the
// replies. It knows no connections and no sessions: what it needs of them
// comes as functions in Options. All exported methods of Loop may be called
// from any goroutine; everything else belongs to the loop's own.
package operate

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Chunks is the loop's view of the content on this node's disk. It is called
// on the loop's goroutine and must not wait for the network.
type Chunks interface {
	chunk.Reader
	// Has reports whether a chunk is on the disk.
	Has(a chunk.Address) bool
	// PutInline keeps chunks that the journal covers until the next checkpoint.
	PutInline(chunks []tree.Chunk) error
}

// Leases revokes what sessions hold before it changes.
type Leases interface {
	// Change marks what an operation is about to change, so that no lease is
	// granted on it, and returns the mark. Where other sessions than except
	// hold leases on it, ready is false, and then is called, from any
	// goroutine, once they have given them up or ended.
	Change(slice geoconfig.SliceID, except uint64, touched []tree.Touch, then func(holders []uint64)) (mark uint64, ready, far bool)
	// Changed takes the mark away: the change is applied, or will not be.
	Changed(mark uint64)
	// Void drops all leases and locks of a slice: this node acts no more.
	Void(slice geoconfig.SliceID)
}

// Network sends frames to other nodes without waiting.
type Network interface {
	// Send sends the slices of payload end to end. It keeps none of the list, and
	// of large slices the bytes, which nobody changes afterwards.
	Send(peer string, class wire.Class, m wire.Method, payload ...[]byte) error
	MaxPayload(class wire.Class) int
}

// Helpers do, on goroutines of their own, what the core asks for and what may
// wait. They answer through the Loop's methods.
type Helpers interface {
	// Swap runs a compare-and-swap on a slice row; then Loop.Swapped.
	Swap(s replica.Swap)
	// Fetch brings missing chunks from other members; then Loop.Held.
	Fetch(slice geoconfig.SliceID, serial geoconfig.Serial, epoch geoconfig.Epoch, missing []chunk.Address)
	// Read finds entries in the journal; then Loop.ReadDone.
	Read(r replica.Read)
	// Transfer copies a slice's state here.
	Transfer(t replica.Transfer)
	// Yield revokes the leases of a slice that is handed over; then Loop.Yielded.
	Yield(slice geoconfig.SliceID)
	// Role tells that this node's part in a slice changed; led says whether it
	// led the slice until now.
	Role(r replica.Role, led bool)
	// Removed tells that a slice's data may go.
	Removed(slice geoconfig.SliceID)
}

// Options are what a Loop works with.
type Options struct {
	Self    geoconfig.NodeID
	Core    *replica.Node
	Clock   boottime.Func
	HLC     *hlc.Clock
	Disk    Disk
	Meta    *meta.DB
	Chunks  Chunks
	Leases  Leases
	Network Network
	Helpers Helpers
	// Rows hears of rows that peers and swaps brought.
	Rows func(geoconfig.SliceRow)
	// Full reports whether a slice takes no more content.
	Full func(geoconfig.SliceID) bool
	// Fatal ends the node: what it promised it can no longer keep.
	Fatal func(error)
	// TickEvery is how often the core is told the time.
	TickEvery time.Duration
	// QueueLimit bounds the client operations admitted at once.
	QueueLimit int
	Logger     *slog.Logger
}

// Disk is the journal, as the loop uses it.
type Disk interface {
	// Append journals records in order, together; done is called by another
	// goroutine when they are on disk. It must not block.
	Append(records []replica.Record, done func(error)) error
}

// Loop is the running loop.
type Loop struct {
	o      Options
	in     *inbox
	slices map[geoconfig.SliceID]*slice
	// waiting are the operations proposed, by token.
	waiting map[uint64]*Operation
	token   uint64
	spare   []event
	out     frames
	now     replica.Time
	// inline are the chunks of proposed entries that the packs do not have yet.
	inline map[chunk.Address]*inlineChunk
	retry  []*Operation // to be evaluated again once outputs are carried out

	published sync.Map // geoconfig.SliceID -> *Published
	full      chan struct{}
	ended     chan struct{}
}

// New makes a Loop; Run runs it.
func New(o Options) *Loop {
	if o.QueueLimit == 0 {
		o.QueueLimit = 8192
	}
	return &Loop{o: o, in: newInbox(), slices: map[geoconfig.SliceID]*slice{}, waiting: map[uint64]*Operation{},
		inline: map[chunk.Address]*inlineChunk{}, out: newFrames(), full: make(chan struct{}, o.QueueLimit), ended: make(chan struct{})}
}

// Run works until ctx ends. What then waits is answered as closed.
func (l *Loop) Run(ctx context.Context) {
	ticker := time.NewTicker(l.o.TickEvery)
	defer ticker.Stop()
	defer close(l.ended)
	for {
		ticked := false
		select {
		case <-ctx.Done():
			l.shut()
			return
		case <-l.in.wake:
		case <-ticker.C:
			ticked = true
		}
		l.turn(ticked)
	}
}

// turn takes everything that waits, and carries out what follows from it.
func (l *Loop) turn(ticked bool) {
	events := l.in.take(l.spare)
	l.now = l.o.Clock()
	if ticked {
		l.o.Core.Tick(l.now)
	}
	for i := range events {
		l.step(&events[i])
	}
	clear(events)
	l.spare = events
	l.flush()
	if ticked {
		l.expireParked()
		l.flush()
	}
}

// step gives one event to the core.
func (l *Loop) step(e *event) {
	switch e.kind {
	case eventOperation:
		l.operate(e.op)
	case eventMessages:
		for _, m := range e.messages {
			if m.Row != nil && l.o.Rows != nil {
				l.o.Rows(*m.Row)
			}
			l.o.Core.Receive(l.now, e.from, m)
		}
	case eventPersisted:
		l.o.Core.Persisted(l.now, e.position)
	case eventHeld:
		l.o.Core.Held(l.now, e.slice, e.serial, e.epoch)
	case eventRows:
		for i := range e.rows {
			l.o.Core.Learn(l.now, &e.rows[i])
		}
	case eventCall:
		e.call()
	}
}

// shut answers what waits when the loop ends.
func (l *Loop) shut() {
	closed := Answer{Err: fault.E(fault.Closed, "operate.Loop", string(l.o.Self), "the node stops")}
	for _, e := range l.in.close() {
		if e.kind == eventOperation {
			l.finish(e.op, closed)
		}
	}
	for _, op := range l.waiting {
		l.finish(op, closed)
	}
	for _, s := range l.slices {
		for _, op := range s.parked {
			l.finish(op, closed)
		}
		for _, a := range s.answers {
			l.finish(a.op, closed)
		}
	}
	l.published.Clear()
}

// Operate hands in an operation. It waits while too many are under way.
func (l *Loop) Operate(op *Operation) {
	if !l.in.put(event{kind: eventOperation, op: op}) {
		op.Done(op, Answer{Err: fault.E(fault.Closed, "operate.Operate", string(l.o.Self), "the node stops")})
	}
}

// Receive hands in messages of a peer that the connection authenticated.
func (l *Loop) Receive(from geoconfig.NodeID, messages []*replica.Message) {
	l.in.put(event{kind: eventMessages, from: from, messages: messages})
}

// Learn hands in slice rows.
func (l *Loop) Learn(rows []geoconfig.SliceRow) { l.in.put(event{kind: eventRows, rows: rows}) }

// Held says that an entry's chunks are on this node's disk.
func (l *Loop) Held(slice geoconfig.SliceID, serial geoconfig.Serial, epoch geoconfig.Epoch) {
	l.in.put(event{kind: eventHeld, slice: slice, serial: serial, epoch: epoch})
}

// Do runs f on the loop's goroutine, with the core, and does not wait.
func (l *Loop) Do(f func(core *replica.Node, now replica.Time)) bool {
	return l.in.put(event{kind: eventCall, call: func() { f(l.o.Core, l.now) }})
}

// Ask runs f on the loop's goroutine and waits for it. With an error f was not
// run and never will be.
func (l *Loop) Ask(ctx context.Context, f func(core *replica.Node, now replica.Time)) error {
	done := make(chan struct{})
	var taken atomic.Bool // by the loop, which runs f, or by a caller who no longer waits
	call := func() {
		if taken.CompareAndSwap(false, true) {
			f(l.o.Core, l.now)
			close(done)
		}
	}
	err := fault.E(fault.Closed, "operate.Ask", string(l.o.Self), "the node stops")
	if !l.in.put(event{kind: eventCall, call: call}) {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		err = &fault.Error{Kind: fault.TimedOut, Op: "operate.Ask", Subject: string(l.o.Self), Cause: ctx.Err()}
	case <-l.ended:
	}
	if taken.CompareAndSwap(false, true) {
		return err
	}
	<-done // it runs now
	return nil
}
