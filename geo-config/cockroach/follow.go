package cockroach

import (
	"cmp"
	"context"
	"fmt"
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

// reading is what the tables had behind a revision. Followers share it: nobody
// changes it.
type reading struct {
	rev     ids.Revision // to follow from next
	more    bool
	lines   []stored // the first rows, in the order of their revisions
	cluster []stored
}

// page reads the first rows after a revision, over all tables. Followers that ask
// for the same at the same time share one reading, and decode it each for itself:
// a change wakes all of them at once.
func (s *Store) page(ctx context.Context, op fault.Op, since ids.Revision, limit int) (geoconfig.Rows, error) {
	shared := s.readings.DoChan(fmt.Sprint(since, "/", limit), func() (any, error) { return s.read(s.db.Life(), op, since, limit) })
	select {
	case <-ctx.Done():
		return geoconfig.Rows{}, s.db.Enter(ctx, op)
	case got := <-shared:
		if got.Err != nil {
			return geoconfig.Rows{}, got.Err
		}
		r := got.Val.(*reading)
		rows := geoconfig.Rows{Revision: r.rev, More: r.more}
		if err := add(&rows, slices.Concat(r.lines, r.cluster)); err != nil {
			return geoconfig.Rows{}, err
		}
		return rows, nil
	}
}

// read asks the tables.
func (s *Store) read(ctx context.Context, op fault.Op, since ids.Revision, limit int) (*reading, error) {
	r := &reading{}
	var lines []stored
	err := s.snapshot(ctx, op, func(batch *pgx.Batch) {
		r.cluster, lines = nil, nil
		for _, t := range relations() {
			if t.after == "" {
				continue
			}
			// Each table stops at the limit, since all rows may be its.
			batch.Queue(t.after, int64(since), plan.FollowRows(limit)).Query(collect(t.table, &lines))
			if t.table == geoconfig.ClusterTable {
				batch.Queue(t.all).Query(collect(t.table, &r.cluster))
			}
		}
	}, func(rev ids.Revision) error {
		r.rev, r.more = rev, false
		slices.SortFunc(lines, func(a, b stored) int { return cmp.Or(cmp.Compare(a.rev, b.rev), plan.CompareKeys(a.key, b.key)) })
		revs := make([]ids.Revision, len(lines))
		for i, l := range lines {
			revs[i] = l.rev
		}
		n := plan.Cut(revs, limit)
		if n < len(lines) {
			r.rev, r.more = revs[n-1], true
		}
		r.lines = lines[:n:n]
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}
