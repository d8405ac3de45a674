package cockroach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/archive"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

var _ archive.Source = Dumper{}

// Dumper writes a store out. The store may be in use.
type Dumper struct {
	Store *Store
	// Stale reads, on CockroachDB, the nearest replica as it was about five
	// seconds ago, which holds no writer up. It is for backups, not for moves.
	Stale bool
}

// Dump implements archive.Source.
func (d Dumper) Dump(ctx context.Context, start func(archive.Header) error, line func(archive.Line) error) error {
	const op fault.Op = "cockroach.Dump"
	s := d.Store
	if err := s.db.Enter(ctx, op); err != nil {
		return err
	}
	begin := "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"
	if d.Stale && s.db.IsCockroach() {
		begin = "BEGIN AS OF SYSTEM TIME follower_read_timestamp()"
	}
	tx, err := s.db.Pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return s.db.Failure(op, err)
	}
	defer database.Rollback(ctx, tx)
	if err := s.dump(ctx, tx, start, line); err != nil {
		return s.db.Failure(op, err)
	}
	return s.db.Failure(op, tx.Commit(ctx))
}

func (s *Store) dump(ctx context.Context, tx pgx.Tx, start func(archive.Header) error, line func(archive.Line) error) error {
	// The rows go straight into the file, however long that takes.
	if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout TO 0"); err != nil {
		return err
	}
	h := archive.Header{Store: s.db.Name}
	if err := tx.QueryRow(ctx, "SELECT revision, audit FROM state WHERE one = 1").Scan(&h.Revision, &h.Audit); err != nil {
		return err
	}
	var cluster []stored
	if err := each(ctx, tx, relations()[0], func(row stored) error { cluster = append(cluster, row); return nil }); err != nil {
		return err
	}
	var rows geoconfig.Rows
	if err := add(&rows, cluster); err != nil {
		return err
	}
	if rows.Cluster != nil {
		h.Cluster = rows.Cluster.ID
	}
	if err := start(h); err != nil {
		return err
	}
	for _, r := range relations() {
		err := each(ctx, tx, r, func(row stored) error {
			return line(archive.Line{Row: &archive.Row{Table: r.table.String(), Key: row.key.Name, Revision: row.rev, Body: row.body}})
		})
		if err != nil {
			return err
		}
	}
	return dumpRest(ctx, tx, line)
}

// each calls fn with the rows of a table, removed ones too.
func each(ctx context.Context, tx pgx.Tx, r relation, fn func(stored) error) error {
	rows, err := tx.Query(ctx, r.every)
	if err != nil {
		return err
	}
	var name string
	var rev ids.Revision
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &rev, &body}, func() error {
		return fn(stored{geoconfig.RowKey{Table: r.table, Name: name}, rev, slices.Clone(body)})
	})
	return err
}

// dumpRest writes the audit log and the keys out.
func dumpRest(ctx context.Context, tx pgx.Tx, line func(archive.Line) error) error {
	rows, err := tx.Query(ctx, "SELECT number, revision, record FROM audit ORDER BY number")
	if err != nil {
		return err
	}
	var number uint64
	var rev ids.Revision
	var record []byte
	_, err = pgx.ForEachRow(rows, []any{&number, &rev, &record}, func() error {
		var a geoconfig.AuditRecord
		if err := json.Unmarshal(record, &a); err != nil {
			return fault.Wrap(fault.Corrupt, "cockroach.Dump", fmt.Sprint("audit/", number), err)
		}
		a.Number, a.Revision = number, rev
		return line(archive.Line{Audit: &a})
	})
	if err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, "SELECT key, revision FROM batches ORDER BY number"); err != nil {
		return err
	}
	var key []byte
	_, err = pgx.ForEachRow(rows, []any{&key, &rev}, func() error {
		return line(archive.Line{Key: &archive.Key{Key: slices.Clone(key), Revision: rev}})
	})
	return err
}

// loadLines is how many lines of an archive one transaction takes.
const loadLines = 500

// Load fills an empty database with an archive, some lines in each transaction.
// Until it has finished, the database cannot be opened otherwise. Load goes on
// where an earlier one of the same archive ended. Errors beside those of Open:
// NotEmpty.
func Load(ctx context.Context, o Options, f *archive.File) error {
	const op fault.Op = "cockroach.Load"
	s, _, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	for done := false; !done; {
		err := s.db.Retry(ctx, op, writePatience, func(ctx context.Context) error {
			var err error
			done, err = s.loadSome(ctx, f)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// loadSome loads the next lines in one transaction. How far the loading is stands
// in the database, so a repetition after a lost answer goes on behind it.
func (s *Store) loadSome(ctx context.Context, f *archive.File) (done bool, err error) {
	tx, err := s.db.Begin(ctx, "state")
	if err != nil {
		return false, err
	}
	defer database.Rollback(ctx, tx)
	var was counters
	var sum string
	var lines int64
	row := tx.QueryRow(ctx, "SELECT revision, audit, keys, archive, archive_lines FROM state WHERE one = 1 FOR UPDATE")
	if err := row.Scan(&was.revision, &was.audit, &was.keys, &sum, &lines); err != nil {
		return false, err
	}
	summary := f.Summary()
	switch {
	case sum == summary.SHA256 && lines < 0 && was.revision == summary.Revision:
		return true, nil
	case lines < 0 && was != counters{}, lines >= 0 && sum != summary.SHA256:
		return false, fault.E(fault.NotEmpty, "cockroach.Load", s.db.Where(), "the database holds another configuration: import into an empty one")
	}
	lines = max(lines, 0)
	p := &part{board: board{rows: make(map[geoconfig.RowKey][]byte), changed: make(map[geoconfig.RowKey]ids.Revision)}}
	if err := p.take(f, int(lines)); err != nil {
		return false, err
	}
	p.was.keys = was.keys
	after := lines + int64(p.lines)
	now := counters{keys: was.keys + int64(len(p.newKeys))}
	if done = after == int64(f.Lines()); done {
		now.revision, now.audit, after = summary.Revision, summary.Audit, -1
	}
	var batch pgx.Batch
	batch.Queue("UPDATE state SET revision = $1, audit = $2, keys = $3, archive = $4, archive_lines = $5 WHERE one = 1",
		now.revision, now.audit, now.keys, summary.SHA256, after).Exec(changes(1))
	if err := p.queue(&batch); err != nil {
		return false, err
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return false, fmt.Errorf("writing the archive: %w", err)
	}
	return done, tx.Commit(ctx)
}

// part is the lines of an archive that one transaction takes.
type part struct {
	board
	records []geoconfig.AuditRecord
	lines   int
}

// errEnough ends the reading of a file.
var errEnough = errors.New("enough lines")

// take reads the next lines of an archive.
func (p *part) take(f *archive.File, skip int) error {
	err := f.Each(skip, func(l archive.Line) error {
		if p.lines == loadLines || p.bytes > maxGroupBytes {
			return errEnough
		}
		p.lines++
		switch {
		case l.Row != nil:
			key := l.Row.RowKey()
			if key.Table == geoconfig.SlicesTable {
				key = geoconfig.SliceKey(plan.SliceID(key))
			}
			p.rows[key], p.changed[key] = l.Row.Body, l.Row.Revision
			p.bytes += len(l.Row.Body)
		case l.Audit != nil:
			p.records = append(p.records, *l.Audit)
		case l.Key != nil:
			p.newKeys = append(p.newKeys, appliedKey{string(l.Key.Key), l.Key.Revision})
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// queue writes the lines.
func (p *part) queue(batch *pgx.Batch) error {
	p.queueRows(batch)
	if err := p.queueReferences(batch); err != nil {
		return err
	}
	var numbers, revs []int64
	var records []string
	for _, a := range p.records {
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		numbers, revs, records = append(numbers, int64(a.Number)), append(revs, int64(a.Revision)), append(records, string(text))
	}
	queueRecords(batch, numbers, revs, records)
	if len(p.newKeys) > 0 {
		p.queueNewKeys(batch)
	}
	return nil
}
