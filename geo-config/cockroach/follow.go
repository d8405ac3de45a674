package cockroach

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// Follow implements geoconfig.Store.
func (s *Store) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	const op fault.Op = "cockroach.Follow"
	if err := s.await(ctx, op, since); err != nil {
		return geoconfig.Rows{}, err
	}
	return s.page(ctx, op, since, plan.Limit(limit))
}

// await waits until the store is past a revision. A poll that failed after the
// wait began ends it.
func (s *Store) await(ctx context.Context, op fault.Op, since ids.Revision) error {
	s.join()
	defer s.leave()
	first := -1
	for {
		s.mu.Lock()
		rev, changed, polls, failed := s.rev, s.changed, s.pollings, s.pollErr
		s.mu.Unlock()
		if err := s.enter(ctx, op); err != nil {
			return err
		}
		if rev > since {
			return nil
		}
		if first < 0 {
			first = polls
		}
		if polls > first && failed != nil {
			return fault.Wrap(fault.Unreachable, op, s.where, failed)
		}
		select {
		case <-changed:
		case <-s.life.Done():
		case <-ctx.Done():
		}
	}
}

// join counts a follower, and wakes the poller for the first one.
func (s *Store) join() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters++; s.waiters == 1 {
		select {
		case s.wanted <- struct{}{}:
		default:
		}
	}
}

func (s *Store) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters--
}

// advance tells followers of a new revision.
func (s *Store) advance(rev ids.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rev > s.rev {
		s.rev = rev
		s.wakeLocked()
	}
}

func (s *Store) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// keepPolling looks for the changes of other processes while there are
// followers, until the store is closed.
func (s *Store) keepPolling() {
	for {
		s.mu.Lock()
		idle := s.waiters == 0
		s.mu.Unlock()
		if idle {
			select {
			case <-s.wanted:
				continue
			case <-s.life.Done():
				return
			}
		}
		s.pollOnce()
		// Shortened at random, so that processes do not poll in step.
		timer := time.NewTimer(s.poll - time.Duration(rand.Int64N(int64(s.poll)/4+1)))
		select {
		case <-timer.C:
		case <-s.life.Done():
			timer.Stop()
			return
		}
	}
}

func (s *Store) pollOnce() {
	var rev ids.Revision
	err := s.retry(s.life, "cockroach.Follow", readPatience, func(ctx context.Context) error {
		var err error
		rev, err = currentRevision(ctx, s.pool)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pollings++
	s.pollErr = err
	if err != nil || rev > s.rev {
		s.rev = max(s.rev, rev)
		s.wakeLocked()
	}
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
