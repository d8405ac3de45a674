package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Open tells how a handle writes.
type Open struct {
	// As goes with every commit of this handle's writes: principal, cues.
	As any
	// ClearSetID makes commits clear set-id bits: the writer is not privileged.
	ClearSetID bool
	// Who is kept in the write journal beside each write, so that Recovery.As can
	// tell the other fields from it.
	Who []byte
	// Name, if not nil, says what a person knows the file by.
	Name func() string
	// Shared has the handle read whole chunks, of which Remote asks the nodes of
	// this client's site first: the cue .Hotspot.
	Shared bool
}

// Handle is one open file. Close it.
type Handle struct {
	file  *file
	as    any // see Open.As
	setid bool
	who   []byte

	seen   uint64             // deferred errors already told; guarded by file.mu
	closed bool               // guarded by file.mu
	wrote  bool               // guarded by file.mu
	whole  context.CancelFunc // of FetchWhole; guarded by file.mu
	source source
}

// Open returns a handle of an object; attr, with Content, may be nil.
func (e *Engine) Open(object ids.Object, attr *pb.Attr, o Open) *Handle {
	f := e.table.open(object)
	f.mu.Lock()
	defer f.mu.Unlock()
	if attr != nil && f.appending() == nil {
		f.learn(attr)
	} else if attr != nil {
		f.base = nil
	}
	if o.Name != nil {
		f.name = o.Name
	}
	h := &Handle{file: f, source: f.source(), as: o.As, setid: o.ClearSetID, who: o.Who, seen: f.failed}
	h.source.shared = o.Shared
	if f.failed > 0 && !f.told {
		h.seen-- // nobody was told of the last failure: whoever opens next is
	}
	return h
}

// Object is the object that the handle has open.
func (h *Handle) Object() ids.Object { return h.file.object }

// Close lets the handle go. It waits for no commit: Flush does. Where this handle
// wrote, or is the file's last, what is dirty is committed in the background; a
// reader's close leaves others' writes to gather. It is idempotent.
func (h *Handle) Close() {
	f := h.file
	f.mu.Lock()
	if h.closed {
		f.mu.Unlock()
		return
	}
	h.closed = true
	f.handles--
	send := h.wrote || f.handles == 0
	if h.whole != nil {
		h.whole()
	}
	f.mu.Unlock()
	h.source.ahead.stop()
	f.freezeIf(func(*layer) bool { return send })
	f.drop()
}

// deferredLocked returns an error of an earlier write that this handle was not told
// of yet; the file's mutex is held.
func (h *Handle) deferredLocked() error {
	if h.seen == h.file.failed {
		return nil
	}
	h.seen, h.file.told = h.file.failed, true
	return h.file.err
}

// check refuses closed handles and tells of deferred errors.
func (h *Handle) check() error {
	const op fault.Op = "content.check"
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	if h.closed {
		return fault.E(fault.BadHandle, op, h.file.object.String(), "the handle is closed")
	}
	return h.deferredLocked()
}

// Flush commits everything dirty of the file and tells of deferred errors: what
// close does. When it returns nil, all writes are on disk at the required
// members.
func (h *Handle) Flush(ctx context.Context) error {
	f := h.file
	l := f.freeze()
	if err := l.wait(ctx); err != nil && !isClosed(l.done) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return h.deferredLocked()
}

// Save returns when what was written survives a crash of this machine, as far as
// there is a write journal, and tells of deferred errors. It waits for no node.
func (h *Handle) Save() error {
	if j := h.file.core.opt.Journal; j != nil {
		if err := j.Sync(); err != nil {
			return err
		}
	}
	return h.check()
}

// Small reports whether something is uncommitted, and all of it travels in one
// commit, without chunks that go ahead.
func (h *Handle) Small() bool {
	f := h.file
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.layers) == 1 && f.layers[0].bytes <= smallLayer
}

// Sync is fsync; as every commit is on disk, it is Flush.
func (h *Handle) Sync(ctx context.Context) error {
	if j := h.file.core.opt.Journal; j != nil {
		if err := j.Sync(); err != nil {
			return err
		}
	}
	return h.Flush(ctx)
}

// Size is the file's size with everything dirty.
func (h *Handle) Size(ctx context.Context) (uint64, error) {
	f := h.file
	if err := f.lockKnown(ctx); err != nil {
		return 0, err
	}
	defer f.mu.Unlock()
	return f.size(), nil
}

// Dirty reports whether the file has uncommitted changes.
func (h *Handle) Dirty() bool {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	return len(h.file.layers) > 0
}
