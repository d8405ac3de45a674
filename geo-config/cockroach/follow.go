package cockroach

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// Follow implements geoconfig.Store.
func (s *Store) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	const op fault.Op = "cockroach.Follow"
	if err := s.watch.await(ctx, op, since); err != nil {
		return geoconfig.Rows{}, err
	}
	return s.page(ctx, op, since, plan.Limit(limit))
}

// page reads the first rows after a revision, over all tables.
func (s *Store) page(ctx context.Context, op fault.Op, since ids.Revision, limit int) (geoconfig.Rows, error) {
	var rows geoconfig.Rows
	var cluster, lines []stored
	err := s.snapshot(ctx, op, func(batch *pgx.Batch) {
		cluster, lines = nil, nil
		for _, r := range relations() {
			// Each table stops at the limit, since all rows may be its.
			batch.Queue(r.after, int64(since), plan.FollowRows(limit)).Query(collect(r.table, &lines))
			if r.table == geoconfig.ClusterTable {
				batch.Queue(r.all).Query(collect(r.table, &cluster))
			}
		}
	}, func(rev ids.Revision) error {
		rows = geoconfig.Rows{Revision: rev}
		slices.SortFunc(lines, func(a, b stored) int { return cmp.Or(cmp.Compare(a.rev, b.rev), plan.CompareKeys(a.key, b.key)) })
		revs := make([]ids.Revision, len(lines))
		for i, l := range lines {
			revs[i] = l.rev
		}
		n := plan.Cut(revs, limit)
		if n < len(lines) {
			rows.Revision, rows.More = revs[n-1], true
		}
		return add(&rows, append(lines[:n:n], cluster...))
	})
	if err != nil {
		return geoconfig.Rows{}, err
	}
	return rows, nil
}
