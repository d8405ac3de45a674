package content

import (
	"context"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// window returns the range map's window that holds n bytes at off, or nil. Where
// it is not here it is loaded, and waited for where wait is set.
func (r *reader) window(off, n uint64, wait bool) []chunk.Extent {
	c := r.core
	k := key{r.v.root.Address, off/windowSize | windowBit}
	s := c.cache.get(k)
	if s == nil {
		if own := c.cache.reserve(true, false, func(int) int64 { return 4096 }, k); own != nil {
			bg := &reader{source: r.source, v: r.v}
			load := func() {
				ctx, cancel := context.WithTimeout(c.ctx, c.opt.CommitTimeout)
				defer cancel()
				bg.ctx = trace.With(ctx, own.work)
				bg.loadWindow(own, off-off%windowSize)
			}
			if !c.start(load) {
				c.cache.settle(own, nil, 0, context.Canceled)
			}
		}
		if s = c.cache.get(k); s == nil {
			return nil // it failed, or was evicted at once: do without
		}
	}
	if !wait && !isClosed(s.entry.done) {
		return nil
	}
	if _, ok := r.await(s); !ok {
		return nil
	}
	if x := s.entry.extents; x[len(x)-1].End() >= off+n {
		return x
	}
	return nil
}

// loadWindow fetches the extents of a window. A node answers as many as it
// likes: of a window that takes more than a few answers the rest is left out.
func (r *reader) loadWindow(own *entry, from uint64) {
	const op fault.Op = "content.loadWindow"
	end := min(from+windowSize, r.v.size)
	var err error
	for try := 0; from < end && err == nil && try < windowAnswers; try++ {
		var a Answer
		a, err = r.core.remote.Range(r.ctx, r.object, Query{Root: r.v.root, Offset: from, Length: end - from, Extents: true})
		if err == nil {
			own.extents, err = chunk.DecodeExtents(own.extents, a.Extents, from)
		}
		if n := len(own.extents); err == nil && n > 0 && own.extents[n-1].End() > from && own.extents[n-1].End() <= end {
			from = own.extents[n-1].End()
		} else if err == nil {
			err = fault.E(fault.Corrupt, op, "", "the extents are not those of the range")
		}
	}
	r.core.cache.settle(own, nil, int64(len(own.extents))*64, err)
}
