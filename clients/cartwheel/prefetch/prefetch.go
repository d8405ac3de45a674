// Package prefetch asks for what may be needed next, where a round trip to the
// active is long: files that are opened in a row, and names below a directory that
// is looked up. What comes goes to the caches of names and content under leases;
// the package keeps only what helps to decide.
package prefetch

import (
	"context"
	"sync"
	"sync/atomic"

	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Sessions are the sessions with nodes, under which leases are granted.
type Sessions interface {
	// With returns the session with a node, and begins one where there is none.
	With(ctx context.Context, node ids.Node) uint64
}

// Options set up a Files. None may be missing.
type Options struct {
	Router   *route.Router
	Cluster  *contact.Cluster
	Sessions Sessions
	Names    *names.Cache
	Tickets  *tickets.Table
	Recorder *trace.Recorder
	// IsFar reports whether the active of a slice is so far away that what may
	// be asked of it next is worth having in advance.
	IsFar func(ids.Slice) bool
	// IsDeferred reports whether an object's active has not heard of it yet.
	IsDeferred func(ids.Object) bool
	// Keep gives content of a version to the content engine.
	Keep func(a *pb.Attr, data []byte)
	// Background runs a function, within the limit of one operation, in a
	// goroutine that the client joins; false: the client ends.
	Background func(func(context.Context)) bool
}

// New returns a Files that knows of no row.
func New(o Options) *Files { return &Files{opt: o} }

// A program may open one small file after the other of a directory that was
// listed far from its active, as grep does. Then the next files come in batches,
// each with a lease and its content. A batch is twice as large as the one
// before while at least half of that one was opened, and asked for when half of
// it is left.
const (
	firstBatch, lastBatch = 4, 64 // files
	// provenBatch is the first batch of a directory after others were opened
	// whole, without waiting for a second file of it.
	provenBatch = 16
	// aheadFile bounds the bytes of a file that is brought along, aheadData those
	// of a batch.
	aheadFile = 64 << 10
	aheadData = 512 << 10
	// maxUnused bounds the files that were brought and not opened yet; when it
	// is met, what was learned of directories is forgotten, and with it whether
	// running ahead is worth it.
	maxUnused = 512
	// maxBatches bounds the batches on their way.
	maxBatches = 8
)

// Files prefetches files that are opened in a row. It is safe for use by many
// goroutines. Its lock is held over no call.
type Files struct {
	opt Options

	busy atomic.Bool // there is something in unused or coming

	mu      sync.Mutex // guards below
	rows    map[ids.Object]*row
	unused  map[ids.Object]*row
	coming  map[ids.Object]*batch
	batches int
	proven  bool // the last batch that was decided on was worth it
}

// row is the files of one directory that are opened in a row.
type row struct {
	dir    ids.Object
	opened int // before the first batch
	size   int // of the last batch
	left   int // of it, not opened yet
	asking bool
}

// batch is files on their way.
type batch struct {
	row   *row
	files []ids.Object
	done  chan struct{}
	work  *trace.Operation
}

// Await waits for a file that is on its way, or until ctx ends.
func (a *Files) Await(ctx context.Context, o ids.Object) {
	if !a.busy.Load() {
		return
	}
	a.mu.Lock()
	b := a.coming[o]
	a.mu.Unlock()
	if b == nil {
		return
	}
	op := trace.From(ctx)
	mark, claimed := op.Begin(), op.Claim(b.work)
	defer func() { op.Waited(mark, b.work, claimed) }()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
}

// OpenedUnknown notes that a file is opened of which only the attributes may be
// known, and runs ahead of the next ones where that is worth it.
func (a *Files) OpenedUnknown(o ids.Object) {
	attr, _, listed := a.opt.Names.Attr(o)
	if !listed || !a.opt.IsFar(o.Slice()) {
		return
	}
	dir := ids.Object(attr.Parent)
	a.mu.Lock()
	r := a.rows[dir]
	if r == nil {
		if a.rows == nil || len(a.rows) >= maxUnused {
			a.rows = map[ids.Object]*row{}
		}
		r = &row{dir: dir}
		a.rows[dir] = r
	}
	r.opened++
	if was := a.unused[o]; was != nil { // its lease was lost
		delete(a.unused, o)
		was.left--
	}
	switch {
	case r.size > 0 && 2*r.left > r.size: // others than those that came are opened
		a.proven = false
		r.size = max(r.size/2, firstBatch)
	case r.size > 0:
		r.size = min(2*r.size, lastBatch)
	case a.proven:
		r.size = provenBatch
	case r.opened > 1:
		r.size = firstBatch
	}
	a.mu.Unlock()
	a.bring(r, o)
}

// OpenedKnown notes that a file is opened that may have been brought, and brings
// the next ones when few are left.
func (a *Files) OpenedKnown(o ids.Object) {
	if !a.busy.Load() {
		return
	}
	a.mu.Lock()
	r := a.unused[o]
	if r == nil {
		a.mu.Unlock()
		return
	}
	delete(a.unused, o)
	a.settleLocked()
	r.left--
	low := !r.asking && 2*r.left <= r.size
	if low {
		a.proven = true
		r.size = min(2*r.size, lastBatch)
	}
	a.mu.Unlock()
	if low {
		a.bring(r, o)
	}
}

// settleLocked notes whether anything is there to be looked for; the mutex is held.
func (a *Files) settleLocked() { a.busy.Store(len(a.unused) > 0 || len(a.coming) > 0) }

// bring asks for the next files of a row behind one of them.
func (a *Files) bring(r *row, o ids.Object) {
	a.mu.Lock()
	if r.size == 0 || r.asking || a.batches >= maxBatches {
		a.mu.Unlock()
		return
	}
	r.asking = true
	a.batches++
	if len(a.unused)+r.size > maxUnused {
		a.rows, a.unused, a.proven = nil, nil, false
	}
	size := r.size
	a.mu.Unlock()
	b := &batch{row: r, done: make(chan struct{})}
	for _, next := range a.opt.Names.Unheld(r.dir, o, size, aheadFile) {
		if !a.opt.IsDeferred(next) {
			b.files = append(b.files, next)
		}
	}
	if len(b.files) > 0 {
		b.work = a.opt.Recorder.Begin(trace.ReadAhead, trace.Caller{})
		a.send(b)
		if a.opt.Background(func(ctx context.Context) {
			files := a.ask(trace.With(ctx, b.work), b.files)
			a.opt.Recorder.EndWork(b.work, nil)
			a.came(b, files)
		}) {
			return
		}
	}
	a.came(b, nil)
}

// send notes files that are on their way.
func (a *Files) send(b *batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.coming == nil {
		a.coming = map[ids.Object]*batch{}
	}
	for _, o := range b.files {
		a.coming[o] = b
	}
	a.settleLocked()
}

// came notes which files of a batch came.
func (a *Files) came(b *batch, files []ids.Object) {
	a.mu.Lock()
	for _, o := range b.files {
		delete(a.coming, o)
	}
	if a.unused == nil {
		a.unused = map[ids.Object]*row{}
	}
	for _, o := range files {
		if a.unused[o] == nil {
			b.row.left++
		}
		a.unused[o] = b.row
	}
	b.row.asking = false
	a.batches--
	a.settleLocked()
	a.mu.Unlock()
	close(b.done)
}
