package content

import (
	"context"
	"time"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// layer is an edit on its way from a file's writers to the active. It lies over
// the layer or the version below it. Writes go to the newest layer until it is
// frozen; frozen ones are committed in order. The file's mutex guards it; a
// frozen layer's bytes do not change any more.
type layer struct {
	edit         // its bytes are charged to the budget
	few    int64 // of the bytes: charged as few
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
func (c *core) newLayer(now time.Time) *layer {
	l := newLayer(now)
	l.work = c.opt.Trace.Begin(trace.WriteBehind, trace.Caller{})
	return l
}

// context is what a layer's uploads run under.
func (l *layer) context(c *core) (context.Context, context.CancelFunc) {
	ctx := trace.With(c.ctx, l.work)
	if t, ok := l.as.(interface {
		Under(context.Context) context.Context
	}); ok {
		ctx = t.Under(ctx)
	}
	return context.WithTimeout(ctx, c.opt.CommitTimeout)
}

// end takes what a layer cost down, where nobody waited for it, and tells
// those who wait; its err is set.
func (c *core) end(l *layer) {
	c.opt.Trace.EndWork(l.work, nil)
	c.budget.charge(charge{-l.bytes, -l.few})
	if l.logged > 0 {
		c.logged.charge(charge{all: -l.logged})
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

// logObject is what the journal has the writes of an object's layer under.
func (l *layer) logObject(object ids.Object) ids.Object {
	if l.recovered != nil {
		return l.recovered.left.loggedAs()
	}
	return object
}
