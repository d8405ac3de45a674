package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// view shows rows to package plan within a transaction.
type view struct {
	tx   *sql.Tx
	path string
}

func (v view) Row(key geoconfig.RowKey) ([]byte, bool, error) {
	table, ok := nameOf(key.Table)
	if !ok {
		return nil, false, fault.E(fault.Invalid, "embedded.Apply", key.String(), "the table is unknown")
	}
	var body []byte
	err := v.tx.QueryRow("SELECT row FROM "+table+" WHERE key = ?", sqlKey(key)).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return body, body != nil, failure("embedded.Apply", v.path, err)
}

// sqlKey is a key as its column has it.
func sqlKey(key geoconfig.RowKey) any {
	if key.Table == geoconfig.SlicesTable {
		return int64(plan.SliceID(key))
	}
	return key.Name
}

// Referrers reads whole tables; removals are rare.
func (v view) Referrers(key geoconfig.RowKey) ([]geoconfig.RowKey, error) {
	var query string
	var table geoconfig.Table
	switch key.Table {
	case geoconfig.SitesTable:
		table, query = geoconfig.NodesTable, "SELECT key FROM nodes WHERE row ->> 'site' = ?"
	case geoconfig.NodesTable:
		table, query = geoconfig.SlicesTable,
			"SELECT DISTINCT s.key FROM slices s, json_each(s.row, '$.members') m WHERE m.value ->> 'node' = ?"
	default:
		return nil, nil
	}
	rows, err := v.tx.Query(query, key.Name)
	if err != nil {
		return nil, failure("embedded.Apply", v.path, err)
	}
	defer rows.Close()
	var out []geoconfig.RowKey
	for rows.Next() {
		from := geoconfig.RowKey{Table: table}
		if err := rows.Scan(&from.Name); err != nil {
			return nil, failure("embedded.Apply", v.path, err)
		}
		out = append(out, from)
	}
	return out, failure("embedded.Apply", v.path, rows.Err())
}

// transaction runs work in a write transaction that no context ends midway, so
// that its outcome is always known, but for a failing disk: then the store
// stays failed, since nobody knows what the file holds until it is opened
// again.
func (s *Store) transaction(ctx context.Context, op fault.Op, work func(*sql.Tx) error) error {
	if err := s.enter(ctx, op); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.note(failure(op, s.path, err))
	}
	if err := work(tx); err != nil {
		// Where the disk was full SQLite has rolled back already, and says so by
		// an error here. Were the transaction still open, the next one would
		// fail to begin, and fail the store.
		_ = tx.Rollback()
		return s.note(failure(op, s.path, err))
	}
	if err := tx.Commit(); err != nil {
		// A full disk fails a commit before anything counts, and the driver
		// has rolled back: the store goes on when there is space again.
		if err = failure(op, s.path, err); fault.Is(err, fault.NoSpace) {
			return err
		}
		return s.fail(err)
	}
	return nil
}

// note stops the store if an error means that its file cannot be trusted.
func (s *Store) note(err error) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return fault.E(fault.Closed, "embedded.Apply", s.path, "the store was closed")
	}
	if k := fault.KindOf(err); k == fault.IO || k == fault.Corrupt {
		return s.fail(err)
	}
	return err
}

func (s *Store) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
		s.wakeLocked()
	}
	return err
}

// Apply implements geoconfig.Store.
func (s *Store) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	const op fault.Op = "embedded.Apply"
	if err := plan.Shape(b); err != nil {
		return 0, err
	}
	var rev ids.Revision
	fresh := false
	err := s.transaction(ctx, op, func(tx *sql.Tx) error {
		known, old, err := lookup(tx, b.Key)
		if err != nil {
			return err
		}
		if known && old == 0 {
			return fault.E(fault.Expired, op, b.Key, "the batch was settled as not applied")
		}
		if known {
			rev = old
			return nil
		}
		fresh = true
		rev, err = s.write(tx, b)
		return err
	})
	if err != nil {
		return 0, err
	}
	if fresh {
		s.advance(rev)
	}
	return rev, nil
}

// advance tells followers of a new revision.
func (s *Store) advance(rev ids.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rev > s.rev && !s.closed {
		s.rev = rev
		s.wakeLocked()
	}
}

func (s *Store) write(tx *sql.Tx, b geoconfig.Batch) (ids.Revision, error) {
	var rev ids.Revision
	if err := tx.QueryRow("UPDATE state SET revision = revision + 1 RETURNING revision").Scan(&rev); err != nil {
		return 0, err
	}
	writes, err := plan.Batch(view{tx, s.path}, b, rev)
	if err != nil {
		return 0, err
	}
	for _, w := range writes {
		table, _ := nameOf(w.Key.Table) // plan has read the row from it already
		if w.Body == nil && !isFollowed(w.Key.Table) {
			if _, err := tx.Exec("DELETE FROM "+table+" WHERE key = ?", sqlKey(w.Key)); err != nil {
				return 0, fmt.Errorf("removing %s: %w", w.Key, err)
			}
			continue
		}
		var body any // NULL: removed
		if w.Body != nil {
			body = string(w.Body)
		}
		_, err := tx.Exec("INSERT INTO "+table+" VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, row = excluded.row",
			sqlKey(w.Key), rev, body)
		if err != nil {
			return 0, fmt.Errorf("writing %s: %w", w.Key, err)
		}
	}
	for _, a := range b.Audit {
		record, err := json.Marshal(a)
		if err != nil {
			return 0, fault.Wrap(fault.Invalid, "embedded.Apply", "audit", err)
		}
		if _, err := tx.Exec("INSERT INTO audit (revision, record) VALUES (?, ?)", rev, string(record)); err != nil {
			return 0, fmt.Errorf("writing the audit log: %w", err)
		}
	}
	return rev, remember(tx, b.Key, rev)
}

// lookup finds a batch by its key.
func lookup(tx *sql.Tx, key string) (known bool, rev ids.Revision, err error) {
	err = tx.QueryRow("SELECT revision FROM batches WHERE key = ?", key).Scan(&rev)
	if errors.Is(err, sql.ErrNoRows) {
		return false, 0, nil
	}
	return err == nil, rev, err
}

func remember(tx *sql.Tx, key string, rev ids.Revision) error {
	if _, err := tx.Exec("INSERT INTO batches (key, revision) VALUES (?, ?)", key, rev); err != nil {
		return fmt.Errorf("remembering the key: %w", err)
	}
	_, err := tx.Exec("DELETE FROM batches WHERE number <= (SELECT max(number) FROM batches) - ?", geoconfig.KeptKeys)
	return err
}

// Settle implements geoconfig.Store.
func (s *Store) Settle(ctx context.Context, key string) (ids.Revision, bool, error) {
	if err := plan.CheckKey(key); err != nil {
		return 0, false, err
	}
	var rev ids.Revision
	err := s.transaction(ctx, "embedded.Settle", func(tx *sql.Tx) error {
		known, old, err := lookup(tx, key)
		rev = old
		if err != nil || known {
			return err
		}
		return remember(tx, key, 0)
	})
	if err != nil {
		return 0, false, err
	}
	return rev, rev != 0, nil
}
