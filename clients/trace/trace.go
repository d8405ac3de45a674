// Package trace counts what file operations cost on the wire: the round trips
// that they waited for, one after the other, and the bytes. A round trip that
// crosses sites is a WAN one; those within a site are counted apart. Calls that
// run side by side count once, and what a node had to ask of other nodes before
// it could answer adds to the call that it answered, so that an operation's
// count is that of its critical path.
//
// An Operation travels in the context of everything that is done for it; the
// place where calls leave the process takes it from there. It knows neither
// wire nor files. Counts are always kept, with atomic additions; single
// operations are kept only while a Watch is on. Everything here is safe for use
// by many goroutines, and a nil *Operation takes all its methods.
package trace

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Operation is one file operation on its way, or a piece of background work.
type Operation struct {
	kind  Kind
	who   Caller
	began time.Duration

	// wan and local are the lengths of the longest chains of round trips so
	// far; a call that ends makes them what they were when it began and its own.
	wan, local atomic.Int32
	calls      atomic.Int32
	out, in    atomic.Int64
	between    atomic.Int64
	claimed    atomic.Bool

	// ctx carries the operation's span; nil: it is not followed.
	ctx context.Context

	watched bool
	mu      sync.Mutex // guards list
	list    []Call
}

// Caller is who asked for an operation: user and thread; 0 where that is not
// known.
type Caller struct{ UID, PID uint32 }

// Call is one request and its answer.
type Call struct {
	Peer   string `json:"peer"`
	Site   string `json:"site"`
	Method string `json:"method"`
	Class  string `json:"class"`
	// WAN and Local are the round trips that it took in sequence: its own and
	// those that the answering node made for it.
	WAN   int `json:"wan"`
	Local int `json:"local"`
	// Out and In are bytes of this process, Between those among nodes of
	// different sites.
	Out     int   `json:"out_bytes"`
	In      int   `json:"in_bytes"`
	Between int64 `json:"between_bytes"`
	// Depth is how many WAN round trips of the operation came before.
	Depth int   `json:"depth"`
	Nanos int64 `json:"time_ns"`
}

// Mark is where an operation stood when something began.
type Mark struct{ wan, local int32 }

// Begin notes where the operation stands before a call or a wait.
func (o *Operation) Begin() Mark {
	if o == nil {
		return Mark{}
	}
	return Mark{o.wan.Load(), o.local.Load()}
}

// End adds a call that began at a mark.
func (o *Operation) End(m Mark, c Call) {
	if o == nil {
		return
	}
	o.calls.Add(1)
	o.out.Add(int64(c.Out))
	o.in.Add(int64(c.In))
	o.between.Add(c.Between)
	raise(&o.wan, m.wan+int32(c.WAN))
	raise(&o.local, m.local+int32(c.Local))
	if o.watched {
		c.Depth = int(m.wan)
		o.mu.Lock()
		o.list = append(o.list, c)
		o.mu.Unlock()
	}
}

// Watched reports whether somebody wants to see each call.
func (o *Operation) Watched() bool { return o != nil && o.watched }

func raise(x *atomic.Int32, to int32) {
	for {
		old := x.Load()
		if old >= to || x.CompareAndSwap(old, to) {
			return
		}
	}
}

// Claim says that an operation is about to wait for work of the background,
// which is then counted with it and not by itself. It reports false where
// another one waits already, or the work has ended and was counted.
func (o *Operation) Claim(work *Operation) bool {
	return o != nil && work != nil && work.claimed.CompareAndSwap(false, true)
}

// Waited adds what an operation waited for: all of claimed work, of other work
// the round trips only, which whoever claimed it has waited for as well.
func (o *Operation) Waited(m Mark, work *Operation, claimed bool) {
	if o == nil || work == nil {
		return
	}
	raise(&o.wan, m.wan+work.wan.Load())
	raise(&o.local, m.local+work.local.Load())
	if !claimed {
		return
	}
	o.calls.Add(work.calls.Load())
	o.out.Add(work.out.Load())
	o.in.Add(work.in.Load())
	o.between.Add(work.between.Load())
	if o.watched {
		work.mu.Lock()
		list := work.list
		work.mu.Unlock()
		o.mu.Lock()
		for _, c := range list {
			c.Depth += int(m.wan)
			o.list = append(o.list, c)
		}
		o.mu.Unlock()
	}
}

type contextKey struct{}

// With returns a context that carries an operation; of a nil one, ctx itself.
func With(ctx context.Context, o *Operation) context.Context {
	if o == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, o)
}

// From returns the operation that a context carries, or nil.
func From(ctx context.Context) *Operation {
	o, _ := ctx.Value(contextKey{}).(*Operation)
	return o
}

// Carry returns to with the operation that from carries.
func Carry(to, from context.Context) context.Context { return With(to, From(from)) }
