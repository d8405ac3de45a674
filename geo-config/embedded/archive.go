package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/archive"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

var (
	_ archive.Source = (*Store)(nil)
	_ archive.Target = (*Store)(nil)
)

// Dump implements archive.Source. Other calls wait meanwhile.
func (s *Store) Dump(ctx context.Context, start func(archive.Header) error, line func(archive.Line) error) error {
	return s.snapshot(ctx, "embedded.Dump", func(tx *sql.Tx) error {
		h := archive.Header{Store: "embedded"}
		if err := tx.QueryRow("SELECT revision FROM state").Scan(&h.Revision); err != nil {
			return err
		}
		if err := tx.QueryRow("SELECT coalesce(max(number), 0) FROM audit").Scan(&h.Audit); err != nil {
			return err
		}
		var rows geoconfig.Rows
		if err := gather(tx, &rows, geoconfig.ClusterTable, "SELECT key, revision, row FROM cluster"); err != nil {
			return err
		}
		if rows.Cluster != nil {
			h.Cluster = rows.Cluster.ID
		}
		if err := start(h); err != nil {
			return err
		}
		for _, t := range tableNames {
			if err := dumpTable(tx, t.table, t.name, line); err != nil {
				return err
			}
		}
		if err := dumpAudit(tx, line); err != nil {
			return err
		}
		return dumpKeys(tx, line)
	})
}

func dumpTable(tx *sql.Tx, table geoconfig.Table, name string, line func(archive.Line) error) error {
	found, err := tx.Query("SELECT key, revision, row FROM " + name + " ORDER BY key")
	if err != nil {
		return fmt.Errorf("reading %v: %w", table, err)
	}
	defer found.Close()
	for found.Next() {
		row := archive.Row{Table: table.String()}
		var body []byte
		if err := found.Scan(&row.Key, &row.Revision, &body); err != nil {
			return fmt.Errorf("reading %v: %w", table, err)
		}
		row.Body = slices.Clone(body)
		if err := line(archive.Line{Row: &row}); err != nil {
			return err
		}
	}
	return found.Err()
}

func dumpAudit(tx *sql.Tx, line func(archive.Line) error) error {
	found, err := tx.Query("SELECT number, revision, record FROM audit ORDER BY number")
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
			return fault.Wrap(fault.Corrupt, "embedded.Dump", fmt.Sprint("audit/", number), err)
		}
		a.Number, a.Revision = number, rev
		if err := line(archive.Line{Audit: &a}); err != nil {
			return err
		}
	}
	return found.Err()
}

func dumpKeys(tx *sql.Tx, line func(archive.Line) error) error {
	found, err := tx.Query("SELECT key, revision FROM batches ORDER BY number")
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var k archive.Key
		if err := found.Scan(&k.Key, &k.Revision); err != nil {
			return err
		}
		if err := line(archive.Line{Key: &k}); err != nil {
			return err
		}
	}
	return found.Err()
}

// Load implements archive.Target: in one transaction, so that a store has all of
// an archive or nothing.
func (s *Store) Load(ctx context.Context, f *archive.File) error {
	const op fault.Op = "embedded.Load"
	rev := f.Summary().Revision
	err := s.transaction(ctx, op, func(tx *sql.Tx) error {
		var have ids.Revision
		var keys int
		if err := tx.QueryRow("SELECT revision FROM state").Scan(&have); err != nil {
			return err
		}
		if err := tx.QueryRow("SELECT count(*) FROM batches").Scan(&keys); err != nil {
			return err
		}
		if have != 0 || keys != 0 {
			return fault.E(fault.NotEmpty, op, s.path, "the store holds a configuration: import into an empty directory")
		}
		if err := f.Each(0, func(l archive.Line) error { return loadLine(tx, l) }); err != nil {
			return err
		}
		_, err := tx.Exec("UPDATE state SET revision = ?", rev)
		return err
	})
	if err != nil {
		return err
	}
	s.advance(rev)
	return nil
}

func loadLine(tx *sql.Tx, l archive.Line) error {
	switch {
	case l.Row != nil:
		key := l.Row.RowKey()
		name, ok := nameOf(key.Table)
		if !ok {
			return fault.E(fault.NewerVersion, "embedded.Load", key.String(), "the table is unknown")
		}
		var body any // NULL: removed
		if l.Row.Body != nil {
			body = string(l.Row.Body)
		}
		if key.Table == geoconfig.SlicesTable {
			key = geoconfig.SliceKey(plan.SliceID(key))
		}
		_, err := tx.Exec("INSERT INTO "+name+" VALUES (?, ?, ?)", sqlKey(key), l.Row.Revision, body)
		return err
	case l.Audit != nil:
		record, err := json.Marshal(l.Audit)
		if err != nil {
			return err
		}
		_, err = tx.Exec("INSERT INTO audit (number, revision, record) VALUES (?, ?, ?)", l.Audit.Number, l.Audit.Revision, string(record))
		return err
	default:
		_, err := tx.Exec("INSERT INTO batches (key, revision) VALUES (?, ?)", string(l.Key.Key), l.Key.Revision)
		return err
	}
}
