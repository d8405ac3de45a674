// Package operate is the heart of a node: the one goroutine that owns the
// replica core and proposes every operation. It drains whatever is queued,
// steps the core for each input, and then carries out the outputs once: one
// journal append, one frame for each peer, one metadata batch, then the
// replies. A function that other goroutines give it (Do, Ask) finds nothing
// left to carry out: the core, the journal and the metadata agree. It knows no
// connections and no sessions: what it needs of them comes as functions in
// Options. All exported methods of Loop may be called from any goroutine;
// everything else belongs to the loop's own.
package operate

import (
	"context"
	"sync"
	"sync/atomic"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

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
	unseen  *unseen
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
		inline: newInlineChunks(o.Chunks), unseen: newUnseen(), out: newFrames(o.Network, o.Logger), admission: newAdmission(o.QueueLimit, o.QueueBytes), holds: newHolds(o.MaxUserHolds), ended: make(chan struct{})}
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
