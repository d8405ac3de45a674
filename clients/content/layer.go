package content

import (
	"context"
	"time"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
)

// layer is what one or more writes make of a file, on top of the layer or the
// version below it: first the size becomes truncate, where cut is set; then the
// segments lie over it; then it is at least extend bytes long. Writes go to the
// newest layer until it is frozen; frozen ones are committed in order. The
// file's mutex guards it; a frozen layer's bytes do not change any more.
type layer struct {
	cut      bool
	truncate uint64
	segs     []segment // ascending and disjoint
	extend   uint64
	// appends marks a layer of appended bytes only: where they go, the active
	// says. Until then they stand at base, which moves with the size below.
	appends bool
	base    uint64

	bytes  int64 // buffers' capacity, charged to the budget
	few    int64 // of them: charged as few
	since  time.Time
	mtime  time.Time
	as     any
	setid  bool
	number uint64 // of the last write in the journal
	logged int64  // bytes of its writes there, charged to the engine's logged
	// recovered is what a crash left behind that this layer is a part of, or nil.
	recovered *recovered
	// from..settle are the journal's writes that are done when this layer is.
	from, settle uint64
	frozen       bool
	sent         bool   // its commit may have been run
	doubts       uint64 // the file's when the commit was sent
	// stream is set where the layer was frozen because it is large: its last
	// bytes, behind the last chunk boundary, move to the next layer.
	stream bool

	// work is what its uploads and commits cost; nil where nobody counts.
	work *trace.Operation

	done chan struct{} // closed when the layer is committed, or never will be
	err  error         // set before done is closed
}

func newLayer(now time.Time) *layer { return &layer{since: now, mtime: now, done: make(chan struct{})} }

// newLayer makes a layer whose work is counted.
func (e *Engine) newLayer(now time.Time) *layer {
	l := newLayer(now)
	l.work = e.opt.Trace.Begin(trace.WriteBehind, trace.Caller{})
	return l
}

// context is what a layer's uploads run under.
func (l *layer) context(e *Engine) (context.Context, context.CancelFunc) {
	return context.WithTimeout(trace.With(e.ctx, l.work), e.opt.CommitTimeout)
}

// end takes what a layer cost down, where nobody waited for it, and tells
// those who wait; its err is set.
func (e *Engine) end(l *layer) {
	e.opt.Trace.EndWork(l.work, nil)
	e.budget.charge(charge{-l.bytes, -l.few})
	if l.logged > 0 {
		e.logged.charge(charge{all: -l.logged})
	}
	close(l.done)
}

// wait returns the layer's outcome; a nil layer is done.
func (l *layer) wait(ctx context.Context) error {
	const op fault.Op = "content.wait"
	if l == nil {
		return nil
	}
	if isClosed(l.done) {
		return l.err
	}
	o := trace.From(ctx)
	mark, claimed := o.Begin(), o.Claim(l.work)
	defer func() { o.Waited(mark, l.work, claimed) }()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return fault.Wrap(fault.Interrupted, op, "", context.Cause(ctx))
	}
}
