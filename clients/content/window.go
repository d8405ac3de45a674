package content

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// window returns the range map's window at off, loading it where that pays:
// for sequential reads, and when a window is read a second time.
func (r *reader) window(off uint64, load bool) ([]chunk.Extent, error) {
	e, f := r.engine(), r.handle.file
	k := key{r.v.root.Address, off/windowSize | windowBit}
	s := e.cache.get(k)
	if s == nil {
		if !load && !f.touch(k.index) {
			return nil, nil
		}
		if own := e.cache.reserve(true, false, func(int) int64 { return 4096 }, k); own != nil {
			e.loadWindow(r, own, off-off%windowSize)
		}
		if s = e.cache.get(k); s == nil {
			return nil, nil // evicted at once, or it failed: do without
		}
	}
	if _, ok := r.await(s); !ok {
		return nil, nil
	}
	return s.entry.extents, nil
}

// loadWindow fetches the extents of a window. A node answers as many as it
// likes: a window that takes more than a few answers is done without.
func (e *Engine) loadWindow(r *reader, own *entry, from uint64) {
	const op fault.Op = "content.loadWindow"
	end := min(from+windowSize, r.v.size)
	var err error
	for try := 0; from < end && err == nil; try++ {
		var a Answer
		a, err = e.remote.Range(r.ctx, r.handle.file.object, Query{Root: r.v.root, Offset: from, Length: end - from, Extents: true})
		if err == nil {
			own.extents, err = chunk.DecodeExtents(own.extents, a.Extents, from)
		}
		if n := len(own.extents); err == nil && n > 0 && own.extents[n-1].End() > from && own.extents[n-1].End() <= end {
			from = own.extents[n-1].End()
		} else if err == nil {
			err = fault.E(fault.Corrupt, op, "", "the extents are not those of the range")
		}
		if try == windowAnswers && from < end && err == nil {
			err = fault.E(fault.TooLarge, op, "", "too many extents")
		}
	}
	e.cache.settle(own, nil, int64(len(own.extents))*64, err)
}

// touch counts a random read of a window and reports whether to load it.
func (f *file) touch(window uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.touched == nil || len(f.touched) > 4096 {
		f.touched = map[uint64]uint8{}
	}
	if f.touched[window] > 0 {
		return true
	}
	f.touched[window]++
	return false
}
