package content

import "context"

// fetch asks for what lies in the window and was not asked for yet.
func (a *ahead) fetch(r *reader) {
	e := r.engine()
	to := min(a.next+a.window, r.v.size)
	a.issued = max(a.issued, a.next)
	if a.ctx == nil {
		a.ctx, a.cancel = context.WithCancel(e.ctx)
	}
	for a.issued < to {
		end := min((a.issued/blockSize+1)*blockSize, r.v.size)
		if end > to && end < r.v.size {
			return // a block at a time
		}
		from := a.issued
		a.issued = end
		bg := &reader{handle: r.handle, ctx: a.ctx, v: r.v}
		if e.opt.NoRangeMap {
			own := bg.reserveBlock(key{r.v.root.Address, from / blockSize}, blockSize, true)
			if own != nil && !e.start(func() { bg.fetchBlock(a.ctx, own, blockSize) }) {
				e.cache.settle(own, nil, 0, context.Canceled)
			}
			continue
		}
		k := key{r.v.root.Address, from/windowSize | windowBit}
		if s := e.cache.get(k); s != nil && isClosed(s.entry.done) {
			bg.fetchChunks(a.ctx, s.entry.extents, from, end, true)
			continue
		}
		if !e.start(func() {
			if extents := bg.window(from, end-from, true); extents != nil {
				bg.fetchChunks(a.ctx, extents, from, end, true)
			}
		}) {
			return
		}
	}
}
