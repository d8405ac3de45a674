package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// Limits that bound what one file can pile up before it is committed.
const (
	maxSegments = 1024 // of a layer
	maxLayers   = 32   // a writer that would add one waits for the oldest
	// journalHead is about what a write takes in the journal beside its data.
	journalHead = 64
)

// WriteAt puts p at off. When it returns, p is kept in memory (and in the
// journal, if there is one), not yet committed; the caller may use p again. It
// waits where too much is dirty. An error of an earlier write is told here,
// and then nothing of this one was taken.
func (h *Handle) WriteAt(ctx context.Context, p []byte, off uint64) error {
	const op fault.Op = "content.WriteAt"
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
	f, core := h.file, h.file.core
	for len(p) > 0 {
		piece := p[:min(len(p), bufferSize)]
		few := f.littleDirty(len(piece))
		c := chargeOf(int64(len(piece)), few)
		if err := core.admit(ctx, c); err != nil {
			return err
		}
		if err := f.room(ctx); err != nil {
			core.budget.charge(c.minus())
			return err
		}
		grown, err := h.piece(piece, put, appends, few)
		if d := grown - int64(len(piece)); d != 0 {
			core.budget.charge(chargeOf(d, few))
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
	f, core := h.file, h.file.core
	f.mu.Lock()
	defer f.mu.Unlock()
	l := h.active(appends)
	if grown, err = put(l, p); few {
		l.few += grown
	}
	if err == nil && (l.bytes >= core.opt.StreamBytes || len(l.segs) >= maxSegments || core.crowded()) {
		f.seal(l, l.bytes >= core.opt.StreamBytes)
	}
	return grown, err
}

// journal keeps a change in the write journal, if there is one.
func (h *Handle) journal(l *layer, w Written) error {
	const op fault.Op = "content.journal"
	f := h.file
	j := f.core.opt.Journal
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
	f.core.logged.charge(charge{all: n})
	return nil
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

// room waits while the file has too many uncommitted layers, or the journal too
// many live bytes.
func (f *file) room(ctx context.Context) error {
	if err := f.core.logRoom(ctx); err != nil {
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

// active returns the layer that writes go to; one of the wrong mode is frozen
// and a new one begun.
func (h *Handle) active(appends bool) *layer {
	f := h.file
	now := f.core.opt.Wall()
	var l *layer
	if n := len(f.layers); n > 0 && !f.layers[n-1].frozen {
		l = f.layers[n-1]
		if l.appends != appends && (l.appends || !l.empty()) {
			f.seal(l, false)
			l = nil
		}
	}
	if l == nil {
		l = f.core.newLayer(now)
		f.layers = append(f.layers, l)
	}
	if appends && !l.appends {
		l.appends = true
		if f.base != nil {
			l.base = f.size()
		}
	}
	h.wrote = true
	l.mtime, l.as, l.setid = now, h.as, l.setid || h.setid
	return l
}
