package cockroach

import (
	"context"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// Limits of the writer.
const (
	// writePatience bounds the repetitions of a transaction that did not come
	// through. A call then fails, as Overloaded or Unreachable.
	writePatience = 20 * time.Second
	// maxWaiting is how many changes may wait for a transaction. Further calls
	// fail with kind Overloaded.
	maxWaiting = 1024
	// maxGroup is how many calls go into one transaction.
	maxGroup = 128
	// maxGroupRows bounds the rows of a group beside its first batch.
	maxGroupRows = geoconfig.MaxBatchRows
)

// Apply implements geoconfig.Store.
func (s *Store) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	if err := plan.Shape(b); err != nil {
		return 0, err
	}
	return s.submit(ctx, &call{op: "cockroach.Apply", key: b.Key, batch: clone(b)})
}

// Settle implements geoconfig.Store.
func (s *Store) Settle(ctx context.Context, key string) (ids.Revision, bool, error) {
	if err := plan.CheckKey(key); err != nil {
		return 0, false, err
	}
	rev, err := s.submit(ctx, &call{op: "cockroach.Settle", key: key})
	return rev, rev != 0, err
}

// submit hands a call to the writer and waits for its answer.
func (s *Store) submit(ctx context.Context, c *call) (ids.Revision, error) {
	if err := s.db.Enter(ctx, c.op); err != nil {
		return 0, err
	}
	c.ctx, c.answer = ctx, make(chan answer, 1)
	select {
	case s.calls <- c:
	default:
		return 0, fault.Errorf(fault.Overloaded, c.op, s.db.Where(), "%d changes wait already: try again", maxWaiting)
	}
	select {
	case a := <-c.answer:
		return a.rev, a.err
	case <-ctx.Done():
		return 0, fault.Wrap(fault.Canceled, c.op, s.db.Where(), ctx.Err())
	case <-s.db.Life().Done():
		return 0, s.db.Closed(c.op)
	}
}

// write is the writer: it commits the calls that wait, in groups, until the
// store is closed.
func (s *Store) write() {
	for {
		select {
		case c := <-s.calls:
			s.commit(s.gather(c))
		case <-s.db.Life().Done():
			return
		}
	}
}

// gather adds to a call those that wait behind it.
func (s *Store) gather(first *call) []*call {
	group, rows := []*call{first}, 0
	for len(group) < maxGroup && rows < maxGroupRows {
		select {
		case c := <-s.calls:
			group, rows = append(group, c), rows+c.rows()
		default:
			return group
		}
	}
	return group
}

// commit answers every call of a group.
func (s *Store) commit(group []*call) {
	for len(group) > 0 && s.db.Life().Err() == nil {
		group = slices.DeleteFunc(group, func(c *call) bool { return c.ctx.Err() != nil })
		if len(group) == 0 {
			return
		}
		answers, err := s.together(group)
		switch {
		case err == nil:
			for i, a := range answers {
				group[i].answer <- a
			}
			group = group[len(answers):]
		case len(group) > 1 && !isOfTheDatabase(err):
			// One of them may be at fault: each for itself.
			for i := range group {
				s.commit(group[i : i+1 : i+1])
			}
			return
		default:
			for _, c := range group {
				c.answer <- answer{err: err}
			}
			return
		}
	}
}

// isOfTheDatabase reports whether every call would fail so now.
func isOfTheDatabase(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unreachable, fault.TimedOut, fault.Canceled, fault.Closed, fault.Overloaded, fault.NoSpace, fault.ReadOnly, fault.Unauthorized:
		return true
	}
	return false
}

// together runs a group in one transaction and returns the answers of its first
// calls, at least of one. An attempt may follow one that came through without an
// answer, so each begins by looking the keys up.
func (s *Store) together(group []*call) ([]answer, error) {
	var answers []answer
	var rev ids.Revision
	err := s.db.Retry(s.db.Life(), group[0].op, writePatience, func(ctx context.Context) error {
		var err error
		answers, rev, err = s.transact(ctx, group)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.watch.advance(rev)
	return answers, nil
}
