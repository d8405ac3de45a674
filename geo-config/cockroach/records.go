package cockroach

import (
	"slices"

	"github.com/jackc/pgx/v5"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/plan"
)

// queueCounts counts the records of the kinds to which a group adds some.
func (b *board) queueCounts(batch *pgx.Batch, group []*call) {
	kinds := map[string]bool{}
	for _, c := range group {
		if c.batch == nil {
			continue
		}
		for _, r := range c.batch.Records {
			if r.Revision == 0 && canHold(r.Key()) {
				kinds[r.Kind] = true
			}
		}
	}
	for kind := range kinds {
		above, below := plan.RecordRange(kind, "")
		batch.Queue("SELECT count(*) FROM records WHERE key > $1::BYTEA AND key < $2::BYTEA", []byte(above), []byte(below)).QueryRow(func(row pgx.Row) error {
			var n int
			if err := row.Scan(&n); err != nil {
				return err
			}
			b.records[kind] = n
			return nil
		})
	}
}

// queueRecordsRead asks for a page of records, with one more that tells whether
// there are others, and for those named.
func queueRecordsRead(batch *pgx.Batch, q geoconfig.Query, page, named *[]stored) {
	const columns = "SELECT convert_from(key, 'UTF8'), revision, body FROM records WHERE "
	if q.Records > 0 {
		above, below := plan.RecordRange(q.RecordKind, q.RecordsAfter)
		batch.Queue(columns+"key > $1::BYTEA AND key < $2::BYTEA ORDER BY records.key LIMIT $3", []byte(above), []byte(below), q.Records+1).
			Query(collect(geoconfig.RecordsTable, page))
	}
	if len(q.RecordKeys) > 0 {
		names := make([][]byte, len(q.RecordKeys))
		for i, k := range q.RecordKeys {
			names[i] = []byte(k.Row().Name)
		}
		batch.Queue(columns+"key = ANY($1::BYTEA[])", names).Query(collect(geoconfig.RecordsTable, named))
	}
}

// inOrder sorts rows and leaves each out that is there twice.
func inOrder(list []stored) []stored {
	slices.SortFunc(list, func(a, b stored) int { return plan.CompareKeys(a.key, b.key) })
	return slices.CompactFunc(list, func(a, b stored) bool { return a.key == b.key })
}
