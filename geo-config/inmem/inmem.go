// Package inmem is a geoconfig.Store in memory: the twin that other packages'
// tests run on, and that shows in the fewest lines what a store does. It
// passes the conformance suite and forgets everything when it is closed. Like
// every store it is safe for concurrent use.
package inmem

import (
	"context"
	"slices"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

var _ geoconfig.Store = (*Store)(nil)

// Store holds rows as JSON, so that nothing is shared with callers.
type Store struct {
	mu      sync.Mutex // guards all below
	rows    map[geoconfig.RowKey]stored
	audit   []geoconfig.AuditRecord
	keys    map[string]ids.Revision // of batches; 0: settled as not applied
	order   []string                // keys, the oldest first
	rev     ids.Revision
	changed chan struct{} // closed and replaced at every change
	closed  bool
}

// stored is a row; body nil: removed.
type stored struct {
	body []byte
	rev  ids.Revision
}

// New returns an empty store.
func New() *Store {
	return &Store{
		rows:    make(map[geoconfig.RowKey]stored),
		keys:    make(map[string]ids.Revision),
		changed: make(chan struct{}),
	}
}

// enter locks the store for a call, or says why it cannot run.
func (s *Store) enter(ctx context.Context, op fault.Op) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Canceled, op, "", err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fault.E(fault.Closed, op, "geo-config", "the store was closed")
	}
	return nil
}

// view shows the rows to package plan; the store is locked.
type view struct{ s *Store }

func (v view) Row(key geoconfig.RowKey) ([]byte, bool, error) {
	row := v.s.rows[key]
	return row.body, row.body != nil, nil
}

func (v view) Referrers(key geoconfig.RowKey) ([]geoconfig.RowKey, error) {
	var out []geoconfig.RowKey
	for from, row := range v.s.rows {
		if row.body == nil {
			continue
		}
		refs, err := plan.References(from.Table, row.body)
		if err != nil {
			return nil, err
		}
		if slices.Contains(refs, key) {
			out = append(out, from)
		}
	}
	return out, nil
}

// Records implements plan.View.
func (v view) Records(kind string) (int, error) { return len(v.s.recordKeys(kind, "")), nil }

// Apply implements geoconfig.Store.
func (s *Store) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	const op fault.Op = "inmem.Apply"
	if err := s.enter(ctx, op); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if rev, ok := s.keys[b.Key]; ok {
		if rev == 0 {
			return 0, fault.E(fault.Expired, op, b.Key, "the batch was settled as not applied")
		}
		return rev, nil
	}
	rev := s.rev + 1
	writes, err := plan.Batch(view{s}, b, rev)
	if err != nil {
		return 0, err
	}
	for _, w := range writes {
		if w.Body == nil && w.Key.Table == geoconfig.RecordsTable {
			delete(s.rows, w.Key) // no follower has to learn of it
			continue
		}
		s.rows[w.Key] = stored{w.Body, rev}
	}
	for _, a := range b.Audit {
		a.Number, a.Revision = uint64(len(s.audit))+1, rev
		s.audit = append(s.audit, a)
	}
	s.remember(b.Key, rev)
	s.rev = rev
	s.wake()
	return rev, nil
}

func (s *Store) remember(key string, rev ids.Revision) {
	s.keys[key] = rev
	s.order = append(s.order, key)
	if len(s.order) > geoconfig.KeptKeys {
		delete(s.keys, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *Store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Settle implements geoconfig.Store.
func (s *Store) Settle(ctx context.Context, key string) (ids.Revision, bool, error) {
	if err := plan.CheckKey(key); err != nil {
		return 0, false, err
	}
	if err := s.enter(ctx, "inmem.Settle"); err != nil {
		return 0, false, err
	}
	defer s.mu.Unlock()
	rev, ok := s.keys[key]
	if !ok {
		s.remember(key, 0)
	}
	return rev, rev != 0, nil
}

// Read implements geoconfig.Store.
func (s *Store) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if err := plan.CheckQuery(q); err != nil {
		return geoconfig.Rows{}, err
	}
	if err := s.enter(ctx, "inmem.Read"); err != nil {
		return geoconfig.Rows{}, err
	}
	defer s.mu.Unlock()
	rows := geoconfig.Rows{Revision: s.rev}
	whole := map[geoconfig.Table]bool{
		geoconfig.ClusterTable: true, geoconfig.SitesTable: q.Sites, geoconfig.NodesTable: q.Nodes, geoconfig.UsersTable: q.Users,
	}
	var keys []geoconfig.RowKey
	for key, row := range s.rows {
		if whole[key.Table] && row.body != nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, plan.CompareKeys)
	list, more := s.sliceKeys(q)
	rows.More = more
	named, moreRecords := s.queriedRecords(q)
	rows.MoreRecords = moreRecords
	for _, key := range slices.Concat(keys, list, named) {
		row := s.rows[key]
		if err := plan.Collect(&rows, key, row.body, row.rev); err != nil {
			return geoconfig.Rows{}, err
		}
	}
	for i := len(s.audit) - 1; i >= 0 && len(rows.Audit) < q.Audit; i-- {
		if q.AuditBefore == 0 || s.audit[i].Number < q.AuditBefore {
			rows.Audit = append(rows.Audit, s.audit[i])
		}
	}
	return rows, nil
}

// sliceKeys resolves the slices that a query asks for, each once.
func (s *Store) sliceKeys(q geoconfig.Query) (keys []geoconfig.RowKey, more bool) {
	var list []ids.Slice
	for key, row := range s.rows {
		if key.Table != geoconfig.SlicesTable || q.Slices == 0 {
			continue
		}
		if id := plan.SliceID(key); row.body != nil && id >= q.SlicesFrom {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	if len(list) > q.Slices {
		list, more = list[:q.Slices], true
	}
	for _, id := range q.SliceIDs {
		if _, ok := s.rows[geoconfig.SliceKey(id)]; ok {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	for _, id := range slices.Compact(list) {
		keys = append(keys, geoconfig.SliceKey(id))
	}
	return keys, more
}

// Follow implements geoconfig.Store.
func (s *Store) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	const op fault.Op = "inmem.Follow"
	for {
		if err := s.enter(ctx, op); err != nil {
			return geoconfig.Rows{}, err
		}
		if s.rev > since {
			defer s.mu.Unlock()
			return s.page(since, plan.Limit(limit))
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return geoconfig.Rows{}, fault.Wrap(fault.Canceled, op, "", ctx.Err())
		}
	}
}

func (s *Store) page(since ids.Revision, limit int) (geoconfig.Rows, error) {
	var keys []geoconfig.RowKey
	for key, row := range s.rows {
		if row.rev > since && key.Table != geoconfig.RecordsTable {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b geoconfig.RowKey) int {
		if ra, rb := s.rows[a].rev, s.rows[b].rev; ra != rb {
			return int(ra) - int(rb)
		}
		return plan.CompareKeys(a, b)
	})
	revs := make([]ids.Revision, len(keys))
	for i, key := range keys {
		revs[i] = s.rows[key].rev
	}
	n := plan.Cut(revs, limit)
	rows := geoconfig.Rows{Revision: s.rev}
	if n < len(keys) {
		rows.Revision, rows.More = revs[n-1], true
	}
	for _, key := range append(keys[:n:n], geoconfig.ClusterKey()) {
		row, ok := s.rows[key]
		if !ok {
			continue
		}
		if err := plan.Collect(&rows, key, row.body, row.rev); err != nil {
			return geoconfig.Rows{}, err
		}
	}
	return rows, nil
}

// Properties implements geoconfig.Store.
func (s *Store) Properties(context.Context) (geoconfig.Properties, error) {
	return geoconfig.Properties{Name: "inmem", SinglePoint: true}, nil
}

// Close implements geoconfig.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.wake()
	}
	return nil
}
