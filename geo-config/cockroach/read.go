package cockroach

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// changes checks that a statement changed as many rows as it had to.
func changes(want int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		if got := tag.RowsAffected(); got != int64(want) {
			return fault.Errorf(fault.Corrupt, "cockroach.Apply", "", "a statement changed %d rows instead of %d", got, want)
		}
		return nil
	}
}

// stored is one row as a table has it; body nil: removed.
type stored struct {
	key  geoconfig.RowKey
	rev  ids.Revision
	body []byte
}

// collect returns a query's handler that gathers key, revision and body.
func collect(table geoconfig.Table, out *[]stored) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var name string
		var rev ids.Revision
		var body []byte
		_, err := pgx.ForEachRow(rows, []any{&name, &rev, &body}, func() error {
			*out = append(*out, stored{geoconfig.RowKey{Table: table, Name: name}, rev, slices.Clone(body)})
			return nil
		})
		return err
	}
}

// snapshot sends queries in one transaction, which sees one revision. queue is
// called anew for every attempt, and after runs when its queries were answered.
func (s *Store) snapshot(ctx context.Context, op fault.Op, queue func(*pgx.Batch), after func(ids.Revision) error) error {
	if err := s.db.Enter(ctx, op); err != nil {
		return err
	}
	return s.db.Retry(ctx, op, readPatience, func(ctx context.Context) error {
		tx, err := s.db.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer database.Rollback(ctx, tx)
		var batch pgx.Batch
		var rev ids.Revision
		batch.Queue("SELECT revision FROM state WHERE one = 1").QueryRow(func(row pgx.Row) error { return row.Scan(&rev) })
		queue(&batch)
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		// At SERIALIZABLE what was read counts once the commit succeeded.
		if err := tx.Commit(ctx); err != nil {
			return fmt.Errorf("ending the reading: %w", err)
		}
		return after(rev)
	})
}

// Read implements geoconfig.Store.
func (s *Store) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if err := plan.CheckQuery(q); err != nil {
		return geoconfig.Rows{}, err
	}
	var rows geoconfig.Rows
	var found, page, named, records, asked []stored
	var audit []geoconfig.AuditRecord
	err := s.snapshot(ctx, "cockroach.Read", func(batch *pgx.Batch) {
		found, page, named, audit = nil, nil, nil, nil
		records, asked = nil, nil
		wanted := map[geoconfig.Table]bool{
			geoconfig.ClusterTable: true, geoconfig.SitesTable: q.Sites, geoconfig.NodesTable: q.Nodes, geoconfig.UsersTable: q.Users,
		}
		for _, r := range relations() {
			if wanted[r.table] {
				batch.Queue(r.all).Query(collect(r.table, &found))
			}
		}
		queueSlices(batch, q, &page, &named)
		queueRecordsRead(batch, q, &records, &asked)
		queueReadAudit(batch, q, &audit)
	}, func(rev ids.Revision) error {
		rows = geoconfig.Rows{Revision: rev, Audit: audit}
		if rows.More = len(page) > q.Slices; rows.More {
			page = page[:q.Slices]
		}
		page = inOrder(append(page, named...))
		if rows.MoreRecords = len(records) > q.Records; rows.MoreRecords {
			records = records[:q.Records]
		}
		return add(&rows, slices.Concat(found, page, inOrder(append(records, asked...))))
	})
	if err != nil {
		return geoconfig.Rows{}, err
	}
	return rows, nil
}

// add puts stored rows into an answer.
func add(rows *geoconfig.Rows, list []stored) error {
	for _, row := range list {
		if err := plan.Collect(rows, row.key, row.body, row.rev); err != nil {
			return err
		}
	}
	return nil
}

// queueSlices asks for a page of slices, with one more that tells whether there
// are others, and for those named.
func queueSlices(batch *pgx.Batch, q geoconfig.Query, page, named *[]stored) {
	const columns = "SELECT key::TEXT, revision, body FROM slices WHERE body IS NOT NULL AND "
	if q.Slices > 0 {
		batch.Queue(columns+"key >= $1 ORDER BY slices.key LIMIT $2", int64(q.SlicesFrom), q.Slices+1).Query(collect(geoconfig.SlicesTable, page))
	}
	if len(q.SliceIDs) > 0 {
		batch.Queue(columns+"key = ANY($1::INT8[])", sliceNumbers(q.SliceIDs)).Query(collect(geoconfig.SlicesTable, named))
	}
}

func queueReadAudit(batch *pgx.Batch, q geoconfig.Query, out *[]geoconfig.AuditRecord) {
	if q.Audit == 0 {
		return
	}
	before := int64(math.MaxInt64)
	if q.AuditBefore != 0 && q.AuditBefore < math.MaxInt64 {
		before = int64(q.AuditBefore)
	}
	batch.Queue("SELECT number, revision, record FROM audit WHERE number < $1 ORDER BY number DESC LIMIT $2", before, q.Audit).Query(func(rows pgx.Rows) error {
		var number uint64
		var rev ids.Revision
		var record []byte
		_, err := pgx.ForEachRow(rows, []any{&number, &rev, &record}, func() error {
			var a geoconfig.AuditRecord
			if err := json.Unmarshal(record, &a); err != nil {
				return fault.Wrap(fault.Corrupt, "cockroach.Read", fmt.Sprint("audit/", number), err)
			}
			a.Number, a.Revision = number, rev
			*out = append(*out, a)
			return nil
		})
		return err
	})
}
