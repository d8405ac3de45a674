package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
)

// maxPieces bounds the pieces that a read is answered by; of more, smaller ones
// the bytes are copied together.
const maxPieces = 256

// ReadPieces is ReadAt for a caller who can do with pieces: of a stream, whose
// chunks are fetched whole, it returns the cache's own memory. The caller must
// not change it, and nobody else does. Where pieces is nil, n bytes are in p.
func (h *Handle) ReadPieces(ctx context.Context, p []byte, off uint64) (pieces [][]byte, n int, err error) {
	const op fault.Op = "content.Handle.ReadPieces"
	f := h.file
	if err := f.lockKnown(ctx); err != nil {
		return nil, 0, fault.Wrap(fault.IO, op, f.object.String(), err)
	}
	base := f.base
	clean := len(f.layers) == 0
	f.mu.Unlock()
	if !clean || base.root.Address.IsZero() || base.size <= smallFile || off >= base.size || f.engine.opt.NoRangeMap {
		n, err = h.ReadAt(ctx, p, off)
		return nil, n, err
	}
	p = p[:min(uint64(len(p)), base.size-off)]
	r := reader{handle: h, ctx: ctx, v: base}
	sequential, first := h.ahead.note(&r, off, uint64(len(p)))
	if sequential {
		if pieces = r.pieces(off, off+uint64(len(p)), first); pieces != nil {
			return pieces, len(p), nil
		}
	}
	if err := r.readNoted(p, off, sequential, first); f.movedOn(ctx, base, err) {
		n, err = h.ReadAt(ctx, p, off)
		return nil, n, err
	} else if err != nil {
		return nil, 0, fault.Wrap(fault.IO, op, f.object.String(), err)
	}
	return nil, len(p), nil
}

// pieces returns a range as pieces of cached chunks, which it fetches where need
// be, or nil where it is not that simple.
func (r *reader) pieces(off, end uint64, first bool) [][]byte {
	if off/windowSize != (end-1)/windowSize || end-off > blockSize {
		return nil
	}
	extents := r.window(off, end-off, !first)
	if extents == nil {
		return nil
	}
	r.fetchChunks(r.ctx, extents, off, end, false)
	var out [][]byte
	for i := extentAt(extents, off); i < len(extents) && extents[i].Offset < end; i++ {
		x := extents[i].Clip(off, end)
		if x.IsHole() || len(out) == maxPieces {
			return nil
		}
		data, ok := r.await(r.engine().cache.get(key{x.Chunk, wholeChunk}))
		if !ok || len(data) != int(x.ChunkSize) {
			return nil
		}
		to := uint64(x.ChunkOffset) + x.Length
		out = append(out, data[x.ChunkOffset:to:to])
	}
	return out
}
