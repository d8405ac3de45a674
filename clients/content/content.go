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
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Options sets up an Engine. The zero value of a field takes its default.
type Options struct {
	// DirtyBytes bounds the bytes written and not yet committed, over all
	// files (64 MiB). A writer that meets the bound waits for commits. An eighth
	// is kept for files of which no more than 256 KiB are dirty.
	DirtyBytes int64
	// CacheBytes bounds the memory of cached content and range maps (64 MiB).
	// What was used least recently goes first, content before maps.
	CacheBytes int64
	// StreamBytes is after how many dirty bytes of one file a commit of them
	// begins in the background (8 MiB).
	StreamBytes int64
	// FlushAfter is the age at which dirty bytes are committed without being
	// asked for (5 s).
	FlushAfter time.Duration
	// Soft gives a write up, and tells its writer, when the nodes do not take it
	// within CommitTimeout. Otherwise it stays dirty and is sent again until they
	// do, or refuse it.
	Soft bool
	// CommitTimeout bounds one upload of about 2 MiB with all of Remote's retries,
	// and, where Soft is set, one commit (5 min).
	CommitTimeout time.Duration
	// RetryAfter is the first pause before what did not get through is sent again
	// (50 ms). It doubles up to 2 s.
	RetryAfter time.Duration
	// ReadAhead bounds the read-ahead window of one handle (8 MiB, and a quarter
	// of the cache); negative switches read-ahead off.
	ReadAhead int64
	// NoRangeMap switches the range map off: each read is resolved at the node.
	NoRangeMap bool
	// Disk is the disk cache of content, or nil.
	Disk DiskCache
	// Journal is the write journal, or nil.
	Journal Journal
	// Now is the clock that stamps writes.
	Now func() time.Time
	// Trace counts the engine's own work; nil: nobody does.
	Trace *trace.Recorder
	Log   *slog.Logger
}

// DiskCache keeps immutable content on this machine's disk.
type DiskCache interface {
	// Get returns the content of a key, verified, or false.
	Get(key []byte) ([]byte, bool)
	// Has reports whether there is content of a key, without reading it.
	Has(key []byte) bool
	// Forget drops the content of a key.
	Forget(key []byte)
	// Put keeps content; it may decline and never blocks on the disk.
	Put(key, data []byte)
}

// Journal keeps what was written and is not yet committed, so that it survives
// a crash of this process.
type Journal interface {
	// Write keeps a write before it is acknowledged and numbers it. An append's
	// offset is where it stood for its writer.
	Write(w Written) (number uint64, err error)
	// Begin notes that a commit of the writes up to a number is on its way, which
	// makes the file's time of change mtime.
	Begin(object ids.Object, upto uint64, mtimeNs int64) error
	// Done gives back the room of the object's writes from..upto, which are
	// committed, or refused and told; version is the object's afterwards. With
	// upto below from it notes the version alone. Writes of one object are done
	// in their order.
	Done(object ids.Object, from, upto uint64, version uint64)
	// Sync makes what was written survive a crash of the machine.
	Sync() error
}

// Written is one acknowledged change of a file.
type Written struct {
	Object  ids.Object
	Version uint64 // what it was made on top of; 0: unknown
	Kind    WriteKind
	Offset  uint64
	Length  uint64 // of a hole
	Data    []byte
	// Who says in the caller's own encoding who wrote.
	Who []byte
}

// WriteKind says what a Written does. The numbers are stored: never renumber.
type WriteKind uint8

// The kinds of Written.
const (
	WriteData     WriteKind = 1 // Data at Offset
	WriteAppend   WriteKind = 2 // Data at the end
	WriteHole     WriteKind = 3 // zeros at Offset for Length, the size unchanged
	WriteTruncate WriteKind = 4 // the size becomes Offset
	WriteExtend   WriteKind = 5 // the size becomes at least Offset
	WriteCreate   WriteKind = 6 // the file was made: Data is what its active will be told, a pb.OperateRequest
)

// Defaults of Options.
const (
	DefaultDirty   = 64 << 20
	DefaultCache   = 64 << 20
	defaultStream  = 8 << 20
	defaultAhead   = 8 << 20
	defaultAge     = 5 * time.Second
	defaultTimeout = 5 * time.Minute
	defaultRetry   = 50 * time.Millisecond
)

// maxUntold bounds the closed files whose failure the next handle is told of.
// That of any further file is in the log only.
const maxUntold = 4096

// journalShare is how many times as many bytes the write journal may hold live
// as may be dirty: bytes that are overwritten before they are committed are dirty
// once, and journaled each time. A writer that meets the bound waits for commits.
const journalShare = 4

func (o Options) filled() Options {
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.DirtyBytes, DefaultDirty)
	set(&o.CacheBytes, DefaultCache)
	set(&o.StreamBytes, min(defaultStream, max(o.DirtyBytes/4, 1)))
	set(&o.ReadAhead, defaultAhead)
	set((*int64)(&o.FlushAfter), int64(defaultAge))
	set((*int64)(&o.CommitTimeout), int64(defaultTimeout))
	set((*int64)(&o.RetryAfter), int64(defaultRetry))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

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

// start runs fn in a goroutine that Close joins; false: it is too late.
func (e *Engine) start(fn func()) bool {
	e.life.Lock()
	defer e.life.Unlock()
	if e.stopped {
		return false
	}
	e.hands.start(e.ctx, &e.work, fn)
	return true
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

// unsaved says what of the file is not committed or was lost untold, if anything.
func (f *file) unsaved() (u Unsaved, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u = Unsaved{Object: f.object, Name: f.name}
	for _, l := range f.layers {
		for _, s := range l.segs {
			u.Bytes += s.n
		}
	}
	if !f.told {
		u.Err = f.err
	}
	return u, len(f.layers) > 0 || u.Err != nil
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
