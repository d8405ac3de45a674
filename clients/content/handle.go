package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Limits that bound what one file can pile up before it is committed.
const (
	maxSegments = 1024 // of a layer
	maxLayers   = 32   // a writer that would add one waits for the oldest
	// journalHead is about what a write takes in the journal beside its data.
	journalHead = 64
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
}

// Handle is one open file. Close it.
type Handle struct {
	file  *file
	as    any
	setid bool
	who   []byte

	seen   uint64 // deferred errors already told; guarded by file.mu
	closed bool   // guarded by file.mu
	wrote  bool   // guarded by file.mu
	ahead  ahead
}

// Open returns a handle of an object; attr, with Content, may be nil.
func (e *Engine) Open(object ids.Object, attr *pb.Attr, o Open) *Handle {
	f := e.open(object)
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
	h := &Handle{file: f, as: o.As, setid: o.ClearSetID, who: o.Who, seen: f.failed}
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
	f.mu.Unlock()
	h.ahead.stop()
	f.freezeIf(func(*layer) bool { return send })
	f.drop()
}

// deferred returns an error of an earlier write that this handle was not told
// of yet; the file's mutex is held.
func (h *Handle) deferred() error {
	if h.seen == h.file.failed {
		return nil
	}
	h.seen, h.file.told = h.file.failed, true
	return h.file.err
}

// check refuses closed handles and tells of deferred errors.
func (h *Handle) check() error {
	const op fault.Op = "content.Handle"
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	if h.closed {
		return fault.E(fault.BadHandle, op, h.file.object.String(), "the handle is closed")
	}
	return h.deferred()
}

// WriteAt puts p at off. When it returns, p is kept in memory (and in the
// journal, if there is one), not yet committed; the caller may use p again. It
// waits where too much is dirty. An error of an earlier write is told here,
// and then nothing of this one was taken.
func (h *Handle) WriteAt(ctx context.Context, p []byte, off uint64) error {
	const op fault.Op = "content.Handle.WriteAt"
	if off > chunk.MaxFileSize || uint64(len(p)) > chunk.MaxFileSize-off {
		return fault.E(fault.TooLarge, op, h.file.object.String(), "larger than the largest file")
	}
	return h.pieces(ctx, p, func(l *layer, piece []byte) (int64, error) {
		err := h.journal(l, Written{Kind: WriteData, Offset: off, Data: piece})
		if err != nil {
			return 0, err
		}
		grown := l.write(piece, off)
		off += uint64(len(piece))
		return grown, nil
	}, false)
}

// Append puts p at the end of the file, wherever that is when it is committed:
// appends of other clients are not overwritten. One call of up to 1 MiB goes
// in one piece. It returns where p stands for now, which is only a guess while
// the current version is unknown.
func (h *Handle) Append(ctx context.Context, p []byte) (off uint64, err error) {
	first := true
	err = h.pieces(ctx, p, func(l *layer, piece []byte) (int64, error) {
		at := l.base + l.length()
		if first {
			off, first = at, false
		}
		if err := h.journal(l, Written{Kind: WriteAppend, Offset: at, Data: piece}); err != nil {
			return 0, err
		}
		return l.write(piece, at), nil
	}, true)
	return off, err
}

// pieces charges the budget for each piece of p and gives it to put under the
// file's mutex.
func (h *Handle) pieces(ctx context.Context, p []byte, put func(*layer, []byte) (int64, error), appends bool) error {
	if err := h.check(); err != nil {
		return err
	}
	f, e := h.file, h.file.engine
	for len(p) > 0 {
		piece := p[:min(len(p), bufferSize)]
		few := f.littleDirty(len(piece))
		c := chargeOf(int64(len(piece)), few)
		if err := e.admit(ctx, c); err != nil {
			return err
		}
		if err := f.room(ctx); err != nil {
			e.budget.charge(c.minus())
			return err
		}
		grown, err := h.piece(piece, put, appends, few)
		if d := grown - int64(len(piece)); d != 0 {
			e.budget.charge(chargeOf(d, few))
		}
		if err != nil {
			return err
		}
		p = p[len(piece):]
	}
	return nil
}

// piece gives one piece of a write to put, under the file's mutex, and seals the
// layer where it is large enough.
func (h *Handle) piece(p []byte, put func(*layer, []byte) (int64, error), appends, few bool) (grown int64, err error) {
	f, e := h.file, h.file.engine
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.active(appends, h)
	if grown, err = put(l, p); few {
		l.few += grown
	}
	if err == nil && (l.bytes >= e.opt.StreamBytes || len(l.segs) >= maxSegments || e.crowded()) {
		f.seal(l, l.bytes >= e.opt.StreamBytes)
	}
	return grown, err
}

// littleDirty reports whether so little of the file is dirty, with n bytes more,
// that they count as few.
func (f *file) littleDirty(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := int64(n)
	for _, l := range f.layers {
		all += l.bytes
	}
	return all <= smallLayer
}

// admit charges c; where there is no room it starts committing all that is
// dirty and waits. A writer that was let in before and writes now sees that
// another one waits, and starts committing by itself.
func (e *Engine) admit(ctx context.Context, c charge) error {
	return e.charge(ctx, e.budget, c)
}

func (e *Engine) charge(ctx context.Context, b *budget, c charge) error {
	if b.try(c) {
		return nil
	}
	return b.admit(ctx, e.ctx, c, func() {
		for _, f := range e.dirtyFiles() {
			f.freezeIf(func(*layer) bool { return true })
		}
	})
}

// crowded reports whether a writer waits for room.
func (e *Engine) crowded() bool {
	return e.budget.crowded() || e.logged != nil && e.logged.crowded()
}

// logRoom waits while the write journal has too many live bytes. It charges
// nothing: who journals does.
func (e *Engine) logRoom(ctx context.Context) error {
	if e.logged == nil {
		return nil
	}
	if err := e.charge(ctx, e.logged, charge{all: 1}); err != nil {
		return err
	}
	e.logged.charge(charge{all: -1})
	return nil
}

// room waits while the file has too many uncommitted layers, or the journal too
// many live bytes.
func (f *file) room(ctx context.Context) error {
	if err := f.engine.logRoom(ctx); err != nil {
		return err
	}
	for {
		f.mu.Lock()
		if len(f.layers) < maxLayers {
			f.mu.Unlock()
			return nil
		}
		oldest := f.layers[0]
		f.mu.Unlock()
		if err := oldest.wait(ctx); err != nil && !isClosed(oldest.done) {
			return err
		}
	}
}

// journal keeps a change in the write journal, if there is one.
func (h *Handle) journal(l *layer, w Written) error {
	const op fault.Op = "content.Handle.journal"
	f := h.file
	j := f.engine.opt.Journal
	if j == nil {
		return nil
	}
	w.Object, w.Version, w.Who = f.object, f.newest, h.who
	number, err := j.Write(w)
	if err != nil {
		return fault.Wrap(fault.IO, op, f.object.String(), err)
	}
	l.number, l.settle = number, number
	if l.from == 0 {
		l.from = number
	}
	n := int64(len(w.Data)) + journalHead
	l.logged += n
	f.engine.logged.charge(charge{all: n})
	return nil
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
	return h.deferred()
}

// Sync is fsync; as every commit is on disk, it is Flush.
func (h *Handle) Sync(ctx context.Context) error {
	if j := h.file.engine.opt.Journal; j != nil {
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
