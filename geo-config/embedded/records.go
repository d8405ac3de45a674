package embedded

import (
	"cmp"
	"database/sql"
	"slices"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/plan"
)

// Records implements plan.View.
func (v view) Records(kind string) (int, error) {
	above, below := plan.RecordRange(kind, "")
	var n int
	err := v.tx.QueryRow("SELECT count(*) FROM records WHERE key > ? AND key < ?", above, below).Scan(&n)
	return n, failure("embedded.Apply", v.path, err)
}

func readRecords(tx *sql.Tx, rows *geoconfig.Rows, q geoconfig.Query) error {
	if q.Records > 0 {
		above, below := plan.RecordRange(q.RecordKind, q.RecordsAfter)
		err := gather(tx, rows, geoconfig.RecordsTable, "SELECT key, revision, row FROM records WHERE key > ? AND key < ? ORDER BY key LIMIT ?", above, below, q.Records+1)
		if err != nil {
			return err
		}
		if len(rows.Records) > q.Records {
			rows.Records, rows.MoreRecords = rows.Records[:q.Records], true
		}
	}
	if len(q.RecordKeys) == 0 {
		return nil
	}
	args := make([]any, len(q.RecordKeys))
	for i, k := range q.RecordKeys {
		args[i] = k.Row().Name
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(args)), ",")
	if err := gather(tx, rows, geoconfig.RecordsTable, "SELECT key, revision, row FROM records WHERE key IN ("+marks+")", args...); err != nil {
		return err
	}
	slices.SortFunc(rows.Records, func(a, b geoconfig.Record) int { return cmp.Compare(a.Key().Name, b.Key().Name) })
	rows.Records = slices.CompactFunc(rows.Records, func(a, b geoconfig.Record) bool { return a.Key() == b.Key() })
	return nil
}
