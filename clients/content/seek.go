package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// SeekData returns the first offset from off on that is not in a hole; NoDevice
// where there is none or off lies behind the end, as lseek has it.
func (h *Handle) SeekData(ctx context.Context, off uint64) (uint64, error) {
	return h.seek(ctx, off, true)
}

// SeekHole returns the first offset from off on that is in a hole; the end of
// the file counts as one.
func (h *Handle) SeekHole(ctx context.Context, off uint64) (uint64, error) {
	return h.seek(ctx, off, false)
}

// extents are some of a version's, asked for by a seek.
type extents struct {
	v    *version
	list []chunk.Extent
}

// at returns the extent that holds off, where it is among them.
func (x *extents) at(v *version, off uint64) (chunk.Extent, bool) {
	if x.v != v || len(x.list) == 0 || off < x.list[0].Offset {
		return chunk.Extent{}, false
	}
	i := extentAt(x.list, off)
	if i == len(x.list) {
		return chunk.Extent{}, false
	}
	return x.list[i], true
}

func (h *Handle) seek(ctx context.Context, off uint64, data bool) (uint64, error) {
	const op fault.Op = "content.seek"
	f := h.file
	var asked extents
	moved := 0
	for {
		if err := f.lockKnown(ctx); err != nil {
			return 0, fault.Wrap(fault.IO, op, f.object.String(), err)
		}
		base, size, at, known := f.seekAndUnlock(off, data, &asked)
		switch {
		case off >= size:
			return 0, fault.E(fault.NoDevice, op, f.object.String(), "behind the end of the file")
		case !known: // the extents must be asked for, without the mutex
			if err := asked.load(ctx, f, base, at); err != nil {
				if moved++; moved > versionsRead || !f.movedOn(ctx, base, err) {
					return 0, fault.Wrap(fault.IO, op, f.object.String(), err)
				}
			}
		case at < size:
			return at, nil
		case data:
			return 0, fault.E(fault.NoDevice, op, f.object.String(), "only a hole follows")
		default:
			return size, nil
		}
	}
}

// seekAndUnlock looks for data, or a hole, from off on, as far as the extents
// are known.
func (f *file) seekAndUnlock(off uint64, data bool, asked *extents) (base *version, size, at uint64, known bool) {
	defer f.mu.Unlock()
	base, size, at, known = f.base, f.size(), off, true
	for at < size {
		var is bool
		var until uint64
		if is, until, known = f.kind(len(f.layers)-1, at, asked); !known || is == data {
			break
		}
		at = until
	}
	return base, size, at, known
}

// load asks for the extents of a version from a place on, as many as a node
// answers with, and adds them to those of the same version right before. A hole
// is one of them, however large it is.
func (x *extents) load(ctx context.Context, f *file, v *version, at uint64) error {
	const op fault.Op = "content.load"
	a, err := f.core.remote.Range(ctx, f.object, Query{Root: v.root, Offset: at, Length: v.size - at, Extents: true})
	if err != nil {
		return err
	}
	if n := len(x.list); x.v != v || n == 0 || x.list[n-1].End() != at {
		x.v, x.list = v, nil
	}
	before := len(x.list)
	if x.list, err = chunk.DecodeExtents(x.list, a.Extents, at); err != nil {
		return err
	}
	if len(x.list) == before || x.list[len(x.list)-1].End() <= at {
		return fault.Errorf(fault.Corrupt, op, f.object.String(), "the extents at %d are missing in the answer", at)
	}
	return nil
}

// seekFailed says why a window could not be loaded.
func (r *reader) seekFailed(at uint64) (uint64, error) {
	const op fault.Op = "content.seekFailed"
	err := r.ctx.Err()
	if err == nil {
		err = fault.Errorf(fault.IO, op, "", "the extents at %d could not be read", at)
	}
	return 0, fault.Wrap(fault.IO, op, r.object.String(), err)
}

// kind says whether off is data in layer i and those below it, and up to where
// at least that holds; known is false where the range map is not here, nor among
// those asked for.
func (f *file) kind(i int, off uint64, asked *extents) (data bool, until uint64, known bool) {
	if i < 0 {
		return f.baseKind(off, asked)
	}
	l := f.layers[i]
	j := l.at(off)
	next := uint64(chunk.MaxFileSize)
	if j < len(l.segs) {
		if s := &l.segs[j]; s.off <= off {
			return s.buf != nil, s.end(), true
		}
		next = l.segs[j].off
	}
	visible := l.visible()
	if off >= visible {
		return false, next, true
	}
	data, until, known = f.kind(i-1, off, asked)
	return data, min(until, next, visible), known
}

func (f *file) baseKind(off uint64, asked *extents) (data bool, until uint64, known bool) {
	b := f.base
	switch {
	case off >= b.size:
		return false, chunk.MaxFileSize, true
	case b.root.Address.IsZero():
		return true, b.size, true
	}
	if x, ok := asked.at(b, off); ok {
		return !x.IsHole(), x.End(), true
	}
	s := f.core.cache.get(key{b.root.Address, off/windowSize | windowBit})
	if s == nil || !isClosed(s.entry.done) || s.entry.err != nil {
		return false, 0, false
	}
	i := extentAt(s.entry.extents, off)
	if i == len(s.entry.extents) {
		return false, 0, false // a part of the window that is left out
	}
	x := s.entry.extents[i]
	return !x.IsHole(), x.End(), true
}
