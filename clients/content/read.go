package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
)

// gap is a part of a read that the last known version must fill.
type gap struct {
	off uint64
	p   []byte
}

// ReadAt reads into p from off and returns how much there was before the end
// of the file; the end is no error. Dirty bytes are seen as they are written.
func (h *Handle) ReadAt(ctx context.Context, p []byte, off uint64) (int, error) {
	const op fault.Op = "content.ReadAt"
	f := h.file
	for try := 1; ; try++ {
		n, base, err := h.readOnce(ctx, p, off)
		if err == nil {
			return n, nil
		}
		if try == versionsRead || !f.movedOn(ctx, base, err) {
			return 0, fault.Wrap(fault.IO, op, f.object.String(), err)
		}
	}
}

// readOnce is ReadAt over the version that it answers, which is nil where that is
// not known.
func (h *Handle) readOnce(ctx context.Context, p []byte, off uint64) (int, *version, error) {
	f := h.file
	if err := f.lockKnown(ctx); err != nil {
		return 0, nil, err
	}
	var few [4]gap
	base, p, gaps := f.coverAndUnlock(p, off, few[:0])
	for _, g := range gaps {
		if err := h.source.readVersion(ctx, base, g.p, g.off); err != nil {
			return 0, base, err
		}
	}
	return len(p), base, nil
}

// coverAndUnlock fills what is dirty of p, cut off at the end of the file, and
// tells what the version below must fill. A panic releases the mutex, too: only
// the request that met it fails.
func (f *file) coverAndUnlock(p []byte, off uint64, few []gap) (base *version, within []byte, gaps []gap) {
	defer f.mu.Unlock()
	size := f.size()
	if off >= size {
		return f.base, nil, nil
	}
	p = p[:min(uint64(len(p)), size-off)]
	return f.base, p, f.cover(len(f.layers)-1, p, off, few)
}

// cover fills p from layer i and those below it, and adds what the version
// below all must fill.
func (f *file) cover(i int, p []byte, off uint64, gaps []gap) []gap {
	if i < 0 {
		n := uint64(0)
		if off < f.base.size {
			n = min(uint64(len(p)), f.base.size-off)
			gaps = append(gaps, gap{off, p[:n]})
		}
		clear(p[n:])
		return gaps
	}
	l := f.layers[i]
	visible := l.visible()
	for j := l.at(off); len(p) > 0; {
		n := uint64(len(p))
		if j < len(l.segs) && l.segs[j].off <= off {
			s := &l.segs[j]
			n = min(n, s.end()-off)
			if s.buf != nil {
				copy(p[:n], s.buf[off-s.off:])
			} else {
				clear(p[:n])
			}
			j++
		} else {
			if j < len(l.segs) {
				n = min(n, l.segs[j].off-off)
			}
			below := uint64(0)
			if off < visible {
				below = min(n, visible-off)
				gaps = f.cover(i-1, p[:below], off, gaps)
			}
			clear(p[below:n])
		}
		p, off = p[n:], off+n
	}
	return gaps
}

// Whole returns all bytes of the file, at most most of them, where this is the
// version that it is at and nothing is written over it. With fetch they are
// asked for where they are not here. The bytes are not to be changed.
func (h *Handle) Whole(ctx context.Context, serial, most uint64, fetch bool) ([]byte, bool) {
	f := h.file
	f.mu.Lock()
	v := f.base
	can := v != nil && v.serial == serial && len(f.layers) == 0 && v.size <= min(most, smallFile)
	f.mu.Unlock()
	switch {
	case !can || v.withheld:
		return nil, false
	case v.root.Address.IsZero():
		return v.inline, true
	}
	r := reader{source: &h.source, ctx: ctx, v: v}
	data, ok := r.whole(fetch && !r.shared)
	return data, ok && uint64(len(data)) == v.size
}
