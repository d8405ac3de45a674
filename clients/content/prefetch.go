package content

import "context"

// note takes down a read, as ahead.note does, and starts fetching what comes next
// in its stream. A read that is shared always counts as one, behind its first.
func (r *reader) note(off, n uint64) (stream, first bool) {
	o := &r.core.opt
	a := &r.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	if stream, first = a.noteLocked(r.v.root.Address, off, n, min(o.ReadAhead, o.CacheBytes/4)); stream && !r.scattered.Load() {
		r.prefetchLocked()
	}
	if r.shared {
		return true, false
	}
	return stream, first
}

// prefetchLocked asks for what lies in the stream's window and was not asked for yet;
// the mutex of ahead is held.
func (r *reader) prefetchLocked() {
	c, a := r.core, &r.ahead
	to := min(a.next+a.window, r.v.size)
	a.issued = max(a.issued, a.next)
	if a.ctx == nil {
		a.ctx, a.cancel = context.WithCancel(c.ctx)
	}
	for a.issued < to {
		end := min((a.issued/blockSize+1)*blockSize, r.v.size)
		if end > to && end < r.v.size {
			return // a block at a time
		}
		from := a.issued
		a.issued = end
		bg := &reader{source: r.source, ctx: a.ctx, v: r.v}
		if c.opt.NoRangeMap {
			own := bg.reserveBlock(key{r.v.root.Address, from / blockSize}, blockSize, true)
			if own != nil && !c.start(func() { bg.fetchBlock(a.ctx, own, blockSize) }) {
				c.cache.settle(own, nil, 0, context.Canceled)
			}
			continue
		}
		k := key{r.v.root.Address, from/windowSize | windowBit}
		if s := c.cache.get(k); s != nil && isClosed(s.entry.done) {
			bg.fetchChunks(a.ctx, s.entry.extents, from, end, true)
			continue
		}
		if !c.start(func() {
			if extents := bg.window(from, end-from, true); extents != nil {
				bg.fetchChunks(a.ctx, extents, from, end, true)
			}
		}) {
			return
		}
	}
}
