package content

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"cartwheel.dev/node/chunk"
)

// scatteredAtOnce is how many chunks of a file are asked for at once where they are
// fetched in any order.
const scatteredAtOnce = 16

// readScattered fetches a file's chunks in an order of this client's own. Clients at
// several sites ask for different ones first then, and can have the others' ones.
func (h *Handle) readScattered(ctx context.Context) {
	f, o := h.file, &h.file.core.opt
	if f.lockKnown(ctx) != nil {
		return
	}
	v := f.base
	f.mu.Unlock()
	if v.withheld || v.root.Address.IsZero() || o.NoRangeMap {
		return
	}
	limit := v.size
	if o.Disk == nil {
		limit = min(limit, uint64(o.CacheBytes)/2)
	}
	r := &reader{source: &h.source, ctx: ctx, v: v}
	for from := uint64(0); from < limit && ctx.Err() == nil; from += windowSize {
		end := min(from+windowSize, limit)
		extents := r.window(from, end-from, true)
		if extents == nil {
			return
		}
		r.fetchScattered(ctx, extents, end)
	}
}

// fetchScattered fetches the chunks of a window up to end, a few at once.
func (r *reader) fetchScattered(ctx context.Context, extents []chunk.Extent, end uint64) {
	var order []chunk.Extent
	for _, x := range extents {
		if !x.IsHole() && x.Offset < end {
			order = append(order, x)
		}
	}
	place := func(x chunk.Extent) uint64 { return mix(binary.LittleEndian.Uint64(x.Chunk[:8]) ^ r.core.opt.Order) }
	slices.SortFunc(order, func(a, b chunk.Extent) int { return cmp.Compare(place(a), place(b)) })
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(scatteredAtOnce, len(order)) {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(order) {
					return
				}
				r.fetchChunks(ctx, order[i:i+1], order[i].Offset, order[i].End(), false)
			}
		})
	}
	all.Wait()
}

// mix spreads the bits of a number, as SplitMix64 does.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
