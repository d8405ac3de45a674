package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// CopyFrom makes [to, to+n) of the file what [at, at+n) of another one, or of
// itself elsewhere, is, by naming the chunks of it: no byte of content moves,
// and holes stay holes. What is dirty of both is committed first, and when it
// returns, the copy is. It answers how many bytes it copied: fewer than n where
// the source ends, or has more extents than fit into one commit. NotSupported
// says that there are no chunks to name, or that the file's slice has not all
// of them: then nothing was done, and reading and writing will do.
func (h *Handle) CopyFrom(ctx context.Context, from *Handle, at, n, to uint64) (uint64, error) {
	const op fault.Op = "content.CopyFrom"
	f := h.file
	if to > chunk.MaxFileSize || n > chunk.MaxFileSize-to {
		return 0, fault.E(fault.TooLarge, op, f.object.String(), "larger than the largest file")
	}
	if err := from.file.freeze().wait(ctx); err != nil && ctx.Err() != nil {
		return 0, err // else its writer is told, and what is there is copied
	}
	if err := h.check(); err != nil {
		return 0, err
	}
	if err := h.Flush(ctx); err != nil {
		return 0, err
	}
	extents, n, err := from.references(ctx, at, n, to)
	if err != nil || n == 0 {
		return 0, err
	}
	res, err := f.core.remote.Commit(ctx, Commit{Object: f.object, As: h.as, Splice: &pb.Commit{
		Object: uint64(f.object), Extents: extents, MtimeNs: f.core.opt.Wall().UnixNano(), ClearSetid: h.setid,
	}})
	if err != nil || res.GetAttr() == nil {
		f.invalidate()
	} else {
		f.setVersion(res.GetAttr())
	}
	if fault.Is(err, fault.Missing) {
		return 0, fault.E(fault.NotSupported, op, f.object.String(), "the slice has not all of the chunks")
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// references names what [at, at+n) of the committed version is made of, as
// extents that lie at to, and how many bytes they are.
func (h *Handle) references(ctx context.Context, at, n, to uint64) ([]*pb.Extent, uint64, error) {
	const op fault.Op = "content.references"
	f := h.file
	if err := f.lockKnown(ctx); err != nil {
		return nil, 0, fault.Wrap(fault.IO, op, f.object.String(), err)
	}
	base := f.base
	f.mu.Unlock()
	switch {
	case at >= base.size:
		return nil, 0, nil
	case base.root.Address.IsZero():
		return nil, 0, fault.E(fault.NotSupported, op, f.object.String(), "the content lies in no chunks")
	}
	end := at + min(n, base.size-at)
	r := reader{source: &h.source, ctx: ctx, v: base}
	known := r.window(at, 1, true)
	if known == nil {
		_, err := r.seekFailed(at)
		return nil, 0, err
	}
	var out []*pb.Extent
	next := at
	for i := extentAt(known, at); i < len(known) && known[i].Offset < end && len(out) < maxExtents; i++ {
		x := known[i].Clip(at, end)
		e := &pb.Extent{Offset: x.Offset - at + to, Length: x.Length, Source: &pb.Extent_Hole{Hole: true}}
		if !x.IsHole() {
			e.Source = &pb.Extent_Chunk{Chunk: x.Chunk[:]}
			e.ChunkOffset, e.ChunkSize = uint64(x.ChunkOffset), x.ChunkSize
		}
		out, next = append(out, e), x.End()
	}
	return out, next - at, nil
}
