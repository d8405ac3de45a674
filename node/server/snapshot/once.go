package snapshot

import (
	"context"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
)

// FetchOnce asks each other member of a slice once for chunks that are not here, and stores
// those that come. It returns those that none gave, and whether every other member answered
// for each of them: a member that is failed or silent may have what the others lack.
func (f *Fetcher) FetchOnce(ctx context.Context, slice ids.Slice, missing []chunk.Address) (left []chunk.Address, answered bool) {
	run := &fetch{s: f, slice: slice, gate: f.bulk, got: &fetched{}}
	row, _ := f.o.Row(slice)
	failed := slices.ContainsFunc(row.Members, func(m geoconfig.Member) bool {
		return m.Node != f.o.Self && m.State == geoconfig.Failed
	})
	left, answered = run.once(ctx, missing)
	return left, answered && !failed
}

// once asks each member that has not failed for chunks that are not here. It returns those
// that none gave, and whether all of them answered for each of those.
func (f *fetch) once(ctx context.Context, missing []chunk.Address) (left []chunk.Address, answered bool) {
	left, answered = slices.Clone(missing), true
	for _, source := range f.s.sources(f.slice, f.first) {
		if len(left) == 0 || ctx.Err() != nil {
			break
		}
		for batch := range slices.Chunk(slices.Clone(left), fetchBatch) {
			answered = f.eachOf(ctx, source, batch) && answered
		}
		left = f.s.o.Packs.Missing(left[:0], slices.Clone(left))
	}
	return left, answered && ctx.Err() == nil
}

// eachOf asks a node for chunks at once and, where that fails, for one after the other: a
// node that cannot read one of them refuses all. It reports whether the node answered.
func (f *fetch) eachOf(ctx context.Context, source string, batch []chunk.Address) (answered bool) {
	err := f.batch(ctx, source, batch)
	if err == nil || len(batch) == 1 {
		return err == nil
	}
	answered = true
	for i := range batch {
		if err := f.batch(ctx, source, batch[i:i+1]); err != nil {
			f.s.o.Logger.Debug("a chunk could not be fetched", logattr.Peer(source), logattr.Err(err))
			answered = false
		}
	}
	return answered
}
