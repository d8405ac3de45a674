// Package content is a client's content engine: it stands between the reads
// and writes of open files and the cluster's commits and chunks. It keeps
// dirty bytes (write-behind with bounded memory), cuts and uploads streams,
// gathers small overwrites into commits, reads ahead, remembers which chunk
// holds which range, and caches. It knows objects, not names, and nothing of
// kernels; sessions and leases are its caller's, who tells it by SetVersion and
// Invalidate what it may still believe.
//
// The parts lie over each other. A core is what all files share. A source reads
// versions, which never change, through the cache. A file has the last version
// known and the layers over it; a sending brings a layer to the active. Handles
// read and write files, and the Engine finds these in a table.
//
// An Engine and its Handles may be used from many goroutines. Each file has one
// mutex that guards its layers and its version and is never held across I/O;
// lock order is table, file, then cache or budget. Commits of one file are made
// one after the other, by goroutines that Close joins.
package content

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Engine is the content engine of one client.
type Engine struct {
	*core
	table  *table
	closed atomic.Bool
}

// New returns an engine over a remote. Close it.
func New(remote Remote, o Options) *Engine {
	e := &Engine{}
	e.core = newCore(remote, o.withDefaults(), e.sendAll)
	e.table = newTable(e.core)
	e.start(e.keep)
	return e
}

// Close commits what is dirty, as far as ctx allows, and ends the engine's
// goroutines. What could not be committed stays in the journal, if there is
// one; the error says that there was something. It is idempotent.
func (e *Engine) Close(ctx context.Context) error {
	const op fault.Op = "content.Close"
	var err error
	if !e.closed.Swap(true) {
		err = e.FlushAll(ctx)
	}
	e.stop(fault.E(fault.Closed, op, "", "the engine was closed"))
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
			old := e.opt.Wall().Add(-e.opt.FlushAfter)
			for _, f := range e.table.all() {
				f.freezeIf(func(l *layer) bool { return l.since.Before(old) })
			}
		}
	}
}

// sendAll starts the commit of all that is dirty.
func (e *Engine) sendAll() {
	for _, f := range e.table.all() {
		f.freezeIf(func(*layer) bool { return true })
	}
}

// FlushAll commits everything that is dirty and returns the first failure.
func (e *Engine) FlushAll(ctx context.Context) error {
	var first error
	files := e.table.all()
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

// SetVersion tells the engine an object's newer version. Older ones than it
// knows are ignored, and objects that are neither open nor dirty.
func (e *Engine) SetVersion(attr *pb.Attr) {
	if f := e.table.find(ids.Object(attr.GetObject())); f != nil {
		f.setVersion(attr)
	}
}

// Invalidate makes the engine ask Version before it reads the object again. It
// touches no dirty bytes.
func (e *Engine) Invalidate(object ids.Object) {
	if f := e.table.find(object); f != nil {
		f.invalidate()
	}
}

// FlushObject commits what is dirty of an object, whoever wrote it. The errors
// stay with the handles.
func (e *Engine) FlushObject(ctx context.Context, object ids.Object) error {
	if f := e.table.find(object); f != nil {
		return f.freeze().wait(ctx)
	}
	return nil
}

// Send starts the commit of what is dirty of an object.
func (e *Engine) Send(object ids.Object) {
	if f := e.table.find(object); f != nil {
		f.freezeIf(func(*layer) bool { return true })
	}
}

// Overlay puts what is dirty over an object's attributes: the size, and the
// time of the last write. It reports whether there is anything.
func (e *Engine) Overlay(attr *pb.Attr) bool {
	f := e.table.find(ids.Object(attr.GetObject()))
	return f != nil && f.overlay(attr)
}

// Made keeps in the write journal, if there is one, that an object was made and
// its active not told yet, and numbers that.
func (e *Engine) Made(object ids.Object, create []byte) (number uint64, err error) {
	const op fault.Op = "content.Made"
	if e.opt.Journal == nil {
		return 0, nil
	}
	number, err = e.opt.Journal.Write(Written{Object: object, Kind: WriteCreate, Data: create})
	return number, fault.Wrap(fault.IO, op, object.String(), err)
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

// Unsaved lists the files with writes that are not committed, and those of which
// writes were lost without a program having been told, by their objects.
func (e *Engine) Unsaved() []Unsaved {
	var out []Unsaved
	for _, f := range e.table.all() {
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
	return Usage{DirtyBytes: e.budget.held(), CacheBytes: e.cache.held(), Files: e.table.len()}
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
func (e *Engine) DropCaches() { e.cache.clear() }
