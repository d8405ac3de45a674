// Package operate is the heart of a node: the one goroutine that owns the
// replica core and proposes every operation. It drains whatever is queued,
// steps the core for each input, and then carries out the outputs once: one
// journal append, one frame for each peer, one metadata batch, then the
// replies. A function that other goroutines give it (Do, Ask) finds nothing
// left to carry out: the core, the journal and the metadata agree. It knows no connections and no sessions: what it needs of them
// comes as functions in Options. All exported methods of Loop may be called
// from any goroutine; everything else belongs to the loop's own.
package operate

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/plant"
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
	Change(slice ids.Slice, except uint64, touched []tree.Touch, then func(holders []uint64)) (mark uint64, ready, far bool)
	// Changed takes the mark away: the change is applied, or will not be.
	Changed(mark uint64)
	// Void drops all leases and locks of a slice: this node acts no more.
	Void(slice ids.Slice)
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
	Fetch(slice ids.Slice, serial ids.Serial, epoch ids.Epoch, missing []chunk.Address)
	// Read finds entries in the journal; then Loop.ReadDone.
	Read(r replica.Read)
	// Transfer copies a slice's state here.
	Transfer(t replica.Transfer)
	// Yield revokes the leases of a slice that is handed over; then Loop.Yielded.
	Yield(slice ids.Slice)
	// Role tells that this node's part in a slice changed; led says whether it
	// led the slice until now.
	Role(r replica.Role, led bool)
	// Removed tells that a slice's data may go.
	Removed(slice ids.Slice)
}

// Options are what a Loop works with.
type Options struct {
	Self    ids.Node
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
	// Committed hears of the chunks, addresses end to end, that an operation
	// named which is applied now. It must not block. Nil: nobody does.
	Committed func(addresses []byte)
	// Full reports whether a slice takes no more content.
	Full func(ids.Slice) bool
	// Fatal ends the node: what it promised it can no longer keep.
	Fatal func(error)
	// TickEvery is how often the core is told the time.
	TickEvery time.Duration
	// QueueLimit and QueueBytes bound the client operations under way at once;
	// one more is answered Overloaded. 0: 8192 and 64 MiB.
	QueueLimit int
	QueueBytes int
	// MaxUserHolds bounds the holds of one user; beyond it, operations that take
	// another are answered Overloaded. 0: nothing does.
	MaxUserHolds int
	Logger       *slog.Logger
}

// Disk is the journal, as the loop uses it.
type Disk interface {
	// Append journals records in order, together; done is called by another
	// goroutine when they are on disk. It must not block.
	Append(records []replica.Record, done func(error)) error
	// Room reports whether so many more bytes can be written now: nil,
	// Overloaded or NoSpace.
	Room(bytes int) error
}

// Loop is the running loop.
type Loop struct {
	o      Options
	in     *inbox
	slices map[ids.Slice]*slice
	// waiting are the operations proposed, by token.
	waiting map[uint64]*Operation
	token   uint64
	spare   []event
	out     frames
	now     replica.Time
	inline  *inlineChunks
	retry   []*Operation // to be evaluated again once outputs are carried out

	published sync.Map // ids.Slice -> *Published
	turns     atomic.Uint64
	appended  atomic.Uint64 // appends handed to the log
	written   atomic.Uint64 // of these, on disk
	admission *admission
	holds     *holds
	behind    atomic.Int64 // bytes of peers' entries that wait in the inbox
	ended     chan struct{}
	broken    atomic.Bool // nothing is carried out any more
}

// New makes a Loop; Run runs it.
func New(o Options) *Loop {
	if o.QueueLimit == 0 {
		o.QueueLimit = 8192
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = 64 << 20
	}
	return &Loop{o: o, in: newInbox(), slices: map[ids.Slice]*slice{}, waiting: map[uint64]*Operation{},
		inline: newInlineChunks(o.Chunks), out: newFrames(), admission: newAdmission(o.QueueLimit, o.QueueBytes), holds: newHolds(o.MaxUserHolds), ended: make(chan struct{})}
}

// Run works until ctx ends, or until what it promised can no longer be kept.
// What then waits is answered as closed.
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
		l.turns.Add(1)
		if l.broken.Load() {
			l.shut()
			return
		}
	}
}

// Progress says how far the loop has come.
type Progress struct {
	Turns             uint64
	Appended, Written uint64 // appends to the log: begun, and on disk
}

// Progress returns it, from any goroutine.
func (l *Loop) Progress() Progress {
	return Progress{Turns: l.turns.Load(), Written: l.written.Load(), Appended: l.appended.Load()}
}

// Stop lets the loop carry nothing out any more, from now on and for good: a
// part of what it wrote may be missing, and the next thing that it wrote or
// sent would vouch for it. Any goroutine may call it.
func (l *Loop) Stop() {
	l.broken.Store(true)
	l.in.rouse()
}

// fail is Stop with the reason, which ends the node. A log that was closed is no
// failure: the node ends already.
func (l *Loop) fail(err error) {
	l.Stop()
	if !fault.Is(err, fault.Closed) {
		l.o.Fatal(err)
	}
}

// turn takes everything that waits, and carries out what follows from it.
func (l *Loop) turn(ticked bool) {
	defer invariant.Catch(l.fail)
	events := l.in.take(l.spare)
	l.now = l.o.Clock()
	if ticked {
		l.o.Core.Tick(l.now)
		l.flush()
	}
	for i := range events {
		if l.broken.Load() {
			l.dropEvents(events[i:])
			break
		}
		if events[i].kind == eventCall && i > 0 && !plant.On(plant.LoopCallsEarly) {
			l.flush() // a call finds the core and the metadata at one serial
		}
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
		l.behind.Add(-int64(e.bytes))
		for _, m := range e.messages {
			if m.Row != nil && l.o.Rows != nil {
				l.o.Rows(*m.Row)
			}
			l.o.Core.Receive(l.now, e.from, m)
		}
	case eventPersisted:
		l.o.Core.Persisted(l.now, e.position)
	case eventHeld:
		l.held(e.slice, replica.EntryID{Serial: e.serial, Epoch: e.epoch})
	case eventRows:
		for i := range e.rows {
			l.o.Core.Learn(l.now, &e.rows[i])
		}
	case eventFreed:
		e.op.freed, e.op.holders = true, e.holders
		l.operate(e.op)
	case eventCall:
		e.call()
	}
}

// closed is the answer to what a node's loop does not take up any more.
func closed(self ids.Node) Answer {
	return Answer{Err: fault.E(fault.Closed, "operate.Loop", string(self), "the node stops")}
}

// dropEvents answers events that are not taken up any more.
func (l *Loop) dropEvents(events []event) {
	for _, e := range events {
		if e.kind == eventOperation || e.kind == eventFreed {
			l.finish(e.op, closed(l.o.Self))
		}
	}
}

// shut answers what waits when the loop ends.
func (l *Loop) shut() {
	closed := closed(l.o.Self)
	l.dropEvents(l.in.close())
	for _, op := range l.retry {
		l.finish(op, closed)
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

// Operate hands in an operation. With too many under way it is answered
// Overloaded at once; those of nodes are always taken, since clients' wait for
// them.
func (l *Loop) Operate(op *Operation) {
	if !op.Internal && !op.admitted {
		if err := l.admission.take(op); err != nil {
			op.Done(op, Answer{Err: err})
			return
		}
		op.admitted = true
	}
	if !l.in.put(event{kind: eventOperation, op: op}) {
		l.finish(op, closed(l.o.Self))
	}
}

// Receive hands in messages of a peer that the connection authenticated. While
// too many entries wait, or the log has no room, those with entries are lost:
// the active sends them again, and beacons go on.
func (l *Loop) Receive(from ids.Node, messages []*replica.Message) {
	bytes := entryBytes(messages)
	if bytes > 0 && (l.behind.Load() > int64(l.o.QueueBytes) || l.o.Disk.Room(bytes) != nil) {
		messages = slices.DeleteFunc(messages, func(m *replica.Message) bool { return len(m.Entries) > 0 })
		bytes = 0
	}
	if len(messages) == 0 {
		return
	}
	l.behind.Add(int64(bytes))
	l.in.put(event{kind: eventMessages, from: from, messages: messages, bytes: bytes})
}

// entryBytes is how much the entries of messages hold.
func entryBytes(messages []*replica.Message) int {
	n := 0
	for _, m := range messages {
		for _, e := range m.Entries {
			n += len(e.Data) + len(e.Result)
		}
	}
	return n
}

// Learn hands in slice rows.
func (l *Loop) Learn(rows []geoconfig.SliceRow) { l.in.put(event{kind: eventRows, rows: rows}) }

// Held says that an entry's chunks are on this node's disk.
func (l *Loop) Held(slice ids.Slice, serial ids.Serial, epoch ids.Epoch) {
	l.in.put(event{kind: eventHeld, slice: slice, serial: serial, epoch: epoch})
}

// Do runs f on the loop's goroutine, with the core, and does not wait. What the
// core wanted before is carried out by then.
func (l *Loop) Do(f func(core *replica.Node, now replica.Time)) bool {
	return l.in.put(event{kind: eventCall, call: func() { f(l.o.Core, l.now) }})
}

// Ask is Do, and waits until f has run. With an error f was not
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
