package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
)

// ReadPieces is ReadAt for a caller who can do with pieces: of a stream, whose
// chunks are fetched whole, it returns the cache's own memory. The caller must
// not change it, and nobody else does. Where pieces is nil, n bytes are in p.
func (h *Handle) ReadPieces(ctx context.Context, p []byte, off uint64) (pieces [][]byte, n int, err error) {
	const op fault.Op = "content.ReadPieces"
	f := h.file
	if err := f.lockKnown(ctx); err != nil {
		return nil, 0, fault.Wrap(fault.IO, op, f.object.String(), err)
	}
	base := f.base
	clean := len(f.layers) == 0
	f.mu.Unlock()
	if !clean || base.root.Address.IsZero() || base.size <= smallFile || off >= base.size || f.core.opt.NoRangeMap {
		n, err = h.ReadAt(ctx, p, off)
		return nil, n, err
	}
	p = p[:min(uint64(len(p)), base.size-off)]
	r := reader{source: &h.source, ctx: ctx, v: base}
	sequential, first := r.note(off, uint64(len(p)))
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
