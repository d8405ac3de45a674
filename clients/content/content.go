// Package content is a client's content engine: it stands between the reads
// and writes of open files and the cluster's commits and chunks. It keeps
// dirty bytes (write-behind with bounded memory), cuts and uploads streams,
// gathers small overwrites into commits, reads ahead, remembers which chunk
// holds which range, and caches. It knows objects, not names, and nothing of
// kernels; sessions and leases are its caller's, who tells it by SetVersion and
// Invalidate what it may still believe.
//
// An Engine and its Handles may be used from many goroutines. Each file has one
// mutex that guards its layers and its version and is never held across I/O;
// lock order is file, then cache or budget. Commits of one file are made one
// after the other, by goroutines that Close joins.
package content

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// maxUntold bounds the closed files whose failure the next handle is told of.
// That of any further file is in the log only.
const maxUntold = 4096

// Engine is the content engine of one client.
type Engine struct {
	remote Remote
	opt    Options
	budget *budget
	logged *budget // of the write journal's live bytes; nil: there is no journal
	cache  *cache
	flight *flight
	// made counts the uploads and commits that succeeded.
	made atomic.Uint64

	// ctx is what background work runs under; Close ends it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // every goroutine of the engine
	hands  *hands

	mu      sync.Mutex
	files   map[ids.Object]*file    // open, with uncommitted writes, or of untold
	untold  map[ids.Object]struct{} // whose failure no handle was told of
	closed  bool
	stopped bool // no goroutine starts any more; guarded by life
	life    sync.Mutex
}

// New returns an engine over a remote. Close it.
func New(remote Remote, o Options) *Engine {
	o = o.filled()
	e := &Engine{remote: remote, opt: o, files: map[ids.Object]*file{}, untold: map[ids.Object]struct{}{}, hands: newHands()}
	e.budget = newBudget(o.DirtyBytes)
	if o.Journal != nil {
		e.logged = newBudget(journalShare * o.DirtyBytes)
	}
	e.cache = newCache(o.CacheBytes, o.Trace)
	e.flight = newFlight(o.Now)
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	e.start(e.keep)
	return e
}

// Close commits what is dirty, as far as ctx allows, and ends the engine's
// goroutines. What could not be committed stays in the journal, if there is
// one; the error says that there was something. It is idempotent.
func (e *Engine) Close(ctx context.Context) error {
	const op fault.Op = "content.Engine.Close"
	e.mu.Lock()
	again := e.closed
	e.closed = true
	e.mu.Unlock()
	var err error
	if !again {
		err = e.FlushAll(ctx)
	}
	e.life.Lock()
	e.stopped = true
	e.life.Unlock()
	e.cancel(fault.E(fault.Closed, op, "", "the engine was closed"))
	e.work.Wait()
	return fault.Wrap(fault.IO, op, "", err)
}

// keep commits dirty bytes that are old.
func (e *Engine) keep() {
	tick := time.NewTicker(max(e.opt.FlushAfter/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
			old := e.opt.Now().Add(-e.opt.FlushAfter)
			for _, f := range e.dirtyFiles() {
				f.freezeIf(func(l *layer) bool { return l.since.Before(old) })
			}
		}
	}
}

// dirtyFiles returns the files at hand.
func (e *Engine) dirtyFiles() []*file {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*file, 0, len(e.files))
	for _, f := range e.files {
		out = append(out, f)
	}
	return out
}

// FlushAll commits everything that is dirty and returns the first failure.
func (e *Engine) FlushAll(ctx context.Context) error {
	var first error
	files := e.dirtyFiles()
	waits := make([]*layer, len(files))
	for i, f := range files {
		waits[i] = f.freeze()
	}
	for _, l := range waits {
		if err := l.wait(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// find returns the state of an object that is open or dirty, or nil.
func (e *Engine) find(object ids.Object) *file {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.files[object]
}

// SetVersion tells the engine an object's newer version. Older ones than it
// knows are ignored, and objects that are neither open nor dirty.
func (e *Engine) SetVersion(attr *pb.Attr) {
	if f := e.find(ids.Object(attr.GetObject())); f != nil {
		f.setVersion(attr)
	}
}

// Invalidate makes the engine ask Version before it reads the object again. It
// touches no dirty bytes.
func (e *Engine) Invalidate(object ids.Object) {
	if f := e.find(object); f != nil {
		f.invalidate()
	}
}

// FlushObject commits what is dirty of an object, whoever wrote it. The errors
// stay with the handles.
func (e *Engine) FlushObject(ctx context.Context, object ids.Object) error {
	if f := e.find(object); f != nil {
		return f.freeze().wait(ctx)
	}
	return nil
}

// Send starts the commit of what is dirty of an object.
func (e *Engine) Send(object ids.Object) {
	if f := e.find(object); f != nil {
		f.freezeIf(func(*layer) bool { return true })
	}
}

// Overlay puts what is dirty over an object's attributes: the size, and the
// time of the last write. It reports whether there is anything.
func (e *Engine) Overlay(attr *pb.Attr) bool {
	f := e.find(ids.Object(attr.GetObject()))
	return f != nil && f.overlay(attr)
}

// Made keeps in the write journal, if there is one, that an object was made and
// its active not told yet, and numbers that.
func (e *Engine) Made(object ids.Object, create []byte) (number uint64, err error) {
	if e.opt.Journal == nil {
		return 0, nil
	}
	number, err = e.opt.Journal.Write(Written{Object: object, Kind: WriteCreate, Data: create})
	return number, fault.Wrap(fault.IO, "content.Engine.Made", object.String(), err)
}

// Told gives back the room of what Made kept: the active has the object at
// this version, or refused it.
func (e *Engine) Told(object ids.Object, number, version uint64) {
	if e.opt.Journal != nil && number != 0 {
		e.opt.Journal.Done(object, number, number, version)
	}
}

// Journals reports whether what is written survives this process.
func (e *Engine) Journals() bool { return e.opt.Journal != nil }

// Unsaved is a file with writes that are not committed.
type Unsaved struct {
	Object ids.Object
	Bytes  uint64
	Name   func() string // what a person knows it by; nil: nothing
	// Err says why writes of it were given up; nil: they are still sent.
	Err error
}

// Unsaved lists the files with writes that are not committed, and those of which
// writes were lost without a program having been told, by their objects.
func (e *Engine) Unsaved() []Unsaved {
	var out []Unsaved
	for _, f := range e.dirtyFiles() {
		if u, ok := f.unsaved(); ok {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b Unsaved) int { return cmp.Compare(a.Object, b.Object) })
	return out
}

// Progress is a number that grows with every upload and commit that succeeds:
// while it does, whoever waits for a flush waits for a slow way, not a broken
// one.
func (e *Engine) Progress() uint64 { return e.made.Load() }

// Usage is what the engine holds in memory.
type Usage struct {
	DirtyBytes, CacheBytes int64
	Files                  int
}

// Usage reports what the engine holds now.
func (e *Engine) Usage() Usage {
	e.mu.Lock()
	n := len(e.files)
	e.mu.Unlock()
	return Usage{DirtyBytes: e.budget.held(), CacheBytes: e.cache.held(), Files: n}
}

// Keep takes the whole content of a small file that came in before anybody
// opened it, for whoever does. The bytes belong to the engine then; those of
// files that are read in another way are not kept.
func (e *Engine) Keep(attr *pb.Attr, data []byte) {
	v, ok := versionOf(attr)
	if !ok || v.root.Address.IsZero() || v.size > smallFile || uint64(len(data)) != v.size {
		return
	}
	k := key{v.root.Address, 0}
	cost := int64(len(data))
	if own := e.cache.reserve(false, false, func(int) int64 { return cost }, k); own != nil {
		e.cache.settle(own, [][]byte{data}, cost, nil)
		e.toDisk(k, data)
	}
}

// DropCaches forgets all content and range maps that can be fetched again; the
// disk cache stays. What is dirty or on its way stays too.
func (e *Engine) DropCaches() {
	c := e.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.limit
	c.limit = 0
	c.evict()
	c.limit = limit
}
