package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// snapshot runs work in a transaction that sees one revision.
func (s *Store) snapshot(ctx context.Context, op fault.Op, work func(*sql.Tx) error) error {
	if err := s.enter(ctx, op); err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s.note(failure(op, s.path, err))
	}
	defer tx.Rollback() // nothing was written
	if err := work(tx); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // the driver says only that it was interrupted
		}
		return s.note(fault.Wrap(fault.Canceled, op, s.path, failure(op, s.path, err)))
	}
	return nil
}

// Read implements geoconfig.Store.
func (s *Store) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if err := plan.CheckQuery(q); err != nil {
		return geoconfig.Rows{}, err
	}
	var rows geoconfig.Rows
	err := s.snapshot(ctx, "embedded.Read", func(tx *sql.Tx) error {
		rows = geoconfig.Rows{}
		if err := tx.QueryRow("SELECT revision FROM state").Scan(&rows.Revision); err != nil {
			return err
		}
		for table, wanted := range map[geoconfig.Table]bool{
			geoconfig.ClusterTable: true, geoconfig.SitesTable: q.Sites, geoconfig.NodesTable: q.Nodes, geoconfig.UsersTable: q.Users,
		} {
			if !wanted {
				continue
			}
			name, _ := nameOf(table) // the four above have one
			if err := gather(tx, &rows, table, "SELECT key, revision, row FROM "+name+" WHERE row IS NOT NULL ORDER BY key"); err != nil {
				return err
			}
		}
		if err := readSlices(tx, &rows, q); err != nil {
			return err
		}
		if err := readRecords(tx, &rows, q); err != nil {
			return err
		}
		return readAudit(tx, &rows, q)
	})
	if err != nil {
		return geoconfig.Rows{}, err
	}
	return rows, nil
}

// gather adds the rows of one table that a query of key, revision and row
// yields.
func gather(tx *sql.Tx, rows *geoconfig.Rows, table geoconfig.Table, query string, args ...any) error {
	found, err := tx.Query(query, args...)
	if err != nil {
		return fmt.Errorf("reading %v: %w", table, err)
	}
	defer found.Close()
	for found.Next() {
		key := geoconfig.RowKey{Table: table}
		var rev ids.Revision
		var body []byte
		if err := found.Scan(&key.Name, &rev, &body); err != nil {
			return fmt.Errorf("reading %v: %w", table, err)
		}
		if err := plan.Collect(rows, key, body, rev); err != nil {
			return err
		}
	}
	return found.Err()
}

func readSlices(tx *sql.Tx, rows *geoconfig.Rows, q geoconfig.Query) error {
	if q.Slices > 0 {
		err := gather(tx, rows, geoconfig.SlicesTable, "SELECT key, revision, row FROM slices WHERE key >= ? ORDER BY key LIMIT ?", q.SlicesFrom, q.Slices+1)
		if err != nil {
			return err
		}
		if len(rows.Slices) > q.Slices {
			rows.Slices, rows.More = rows.Slices[:q.Slices], true
		}
	}
	if len(q.SliceIDs) == 0 {
		return nil
	}
	args := make([]any, len(q.SliceIDs))
	for i, id := range q.SliceIDs {
		args[i] = id
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(args)), ",")
	if err := gather(tx, rows, geoconfig.SlicesTable, "SELECT key, revision, row FROM slices WHERE key IN ("+marks+")", args...); err != nil {
		return err
	}
	slices.SortFunc(rows.Slices, func(a, b geoconfig.SliceRow) int { return int(a.ID) - int(b.ID) })
	rows.Slices = slices.CompactFunc(rows.Slices, func(a, b geoconfig.SliceRow) bool { return a.ID == b.ID })
	return nil
}

func readAudit(tx *sql.Tx, rows *geoconfig.Rows, q geoconfig.Query) error {
	if q.Audit == 0 {
		return nil
	}
	before := int64(math.MaxInt64)
	if q.AuditBefore != 0 && q.AuditBefore < math.MaxInt64 {
		before = int64(q.AuditBefore)
	}
	found, err := tx.Query("SELECT number, revision, record FROM audit WHERE number < ? ORDER BY number DESC LIMIT ?", before, q.Audit)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var a geoconfig.AuditRecord
		var number uint64
		var rev ids.Revision
		var body []byte
		if err := found.Scan(&number, &rev, &body); err != nil {
			return err
		}
		if err := json.Unmarshal(body, &a); err != nil {
			return fault.Wrap(fault.Corrupt, "embedded.Read", fmt.Sprint("audit/", number), err)
		}
		a.Number, a.Revision = number, rev
		rows.Audit = append(rows.Audit, a)
	}
	return found.Err()
}

// Follow implements geoconfig.Store.
func (s *Store) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	const op fault.Op = "embedded.Follow"
	for {
		// The channel is taken before the look at whether the store is open:
		// the other way round, a Close in between would wake nobody.
		s.mu.Lock()
		rev, changed := s.rev, s.changed
		s.mu.Unlock()
		if err := s.enter(ctx, op); err != nil {
			return geoconfig.Rows{}, err
		}
		if rev > since {
			return s.page(ctx, since, plan.Limit(limit))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return geoconfig.Rows{}, fault.Wrap(fault.Canceled, op, "", ctx.Err())
		}
	}
}

// line is one changed row.
type line struct {
	key  geoconfig.RowKey
	body []byte
}

func (s *Store) page(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	var rows geoconfig.Rows
	err := s.snapshot(ctx, "embedded.Follow", func(tx *sql.Tx) error {
		rows = geoconfig.Rows{}
		if err := tx.QueryRow("SELECT revision FROM state").Scan(&rows.Revision); err != nil {
			return err
		}
		lines, revs, err := changes(tx, since, plan.FollowRows(limit))
		if err != nil {
			return err
		}
		n := plan.Cut(revs, limit)
		if n < len(lines) {
			rows.Revision, rows.More = revs[n-1], true
		}
		for i, l := range lines[:n] {
			if err := plan.Collect(&rows, l.key, l.body, revs[i]); err != nil {
				return err
			}
		}
		return gather(tx, &rows, geoconfig.ClusterTable, "SELECT key, revision, row FROM cluster")
	})
	if err != nil {
		return geoconfig.Rows{}, err
	}
	return rows, nil
}

// changes returns the first rows after a revision, over all tables.
func changes(tx *sql.Tx, since ids.Revision, limit int) ([]line, []ids.Revision, error) {
	var parts []string
	for _, t := range tableNames {
		if !isFollowed(t.table) {
			continue
		}
		// Each part goes by its table's index and stops at the limit.
		parts = append(parts, fmt.Sprintf("SELECT * FROM (SELECT %d AS t, key, revision, row FROM %s WHERE revision > ?1 ORDER BY revision LIMIT ?2)", t.table, t.name))
	}
	found, err := tx.Query(strings.Join(parts, " UNION ALL ")+" ORDER BY revision, t, key LIMIT ?2", since, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the changes: %w", err)
	}
	defer found.Close()
	var lines []line
	var revs []ids.Revision
	for found.Next() {
		var l line
		var rev ids.Revision
		if err := found.Scan(&l.key.Table, &l.key.Name, &rev, &l.body); err != nil {
			return nil, nil, fmt.Errorf("reading the changes: %w", err)
		}
		lines, revs = append(lines, l), append(revs, rev)
	}
	return lines, revs, found.Err()
}
