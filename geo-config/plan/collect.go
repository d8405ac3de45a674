package plan

import (
	"cmp"
	"encoding/json"
	"strconv"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Collect adds a stored row to an answer; body nil stands for a row that was
// removed at rev.
func Collect(rows *geoconfig.Rows, key geoconfig.RowKey, body []byte, rev ids.Revision) error {
	if body == nil {
		rows.Removed = append(rows.Removed, geoconfig.Removal{Key: key, Revision: rev})
		return nil
	}
	var err error
	switch key.Table {
	case geoconfig.ClusterTable:
		rows.Cluster = new(geoconfig.Cluster)
		err = json.Unmarshal(body, rows.Cluster)
	case geoconfig.SitesTable:
		rows.Sites, err = add(rows.Sites, body)
	case geoconfig.NodesTable:
		rows.Nodes, err = add(rows.Nodes, body)
	case geoconfig.SlicesTable:
		rows.Slices, err = add(rows.Slices, body)
	case geoconfig.UsersTable:
		rows.Users, err = add(rows.Users, body)
	case geoconfig.RecordsTable:
		rows.Records, err = add(rows.Records, body)
	default:
		err = fault.E(fault.NewerVersion, "plan.Collect", key.String(), "the table is unknown")
	}
	return fault.Wrap(fault.Corrupt, "plan.Collect", key.String(), err)
}

func add[T any](rows []T, body []byte) ([]T, error) {
	var row T
	err := json.Unmarshal(body, &row)
	return append(rows, row), err
}

// CheckQuery bounds a query.
func CheckQuery(q geoconfig.Query) error {
	const most = geoconfig.MaxBatchRows
	if len(q.SliceIDs) > most || q.Slices > most || q.Audit > most {
		return fault.Errorf(fault.TooLarge, "plan.CheckQuery", "", "a query may ask for %d slices or audit records at most", most)
	}
	if q.Slices < 0 || q.Audit < 0 {
		return fault.E(fault.Invalid, "plan.CheckQuery", "", "a query cannot ask for fewer than no rows")
	}
	return checkRecordQuery(q)
}

// Limit returns the number of rows that Follow aims at.
func Limit(limit int) int {
	if limit <= 0 || limit > geoconfig.MaxBatchRows {
		return geoconfig.MaxBatchRows
	}
	return limit
}

// FollowRows is how many rows in the order of their revisions a store has to
// fetch to answer Follow with this limit.
func FollowRows(limit int) int { return limit + geoconfig.MaxBatchRows + 1 }

// Cut returns how many of the rows with these rising revisions go into one
// answer of Follow: limit, and then to the end of the batch.
func Cut(revs []ids.Revision, limit int) int {
	n := min(limit, len(revs))
	for n > 0 && n < len(revs) && revs[n] == revs[n-1] {
		n++
	}
	return n
}

// CompareKeys orders rows by table, slices by number and others by name.
func CompareKeys(a, b geoconfig.RowKey) int {
	if c := cmp.Compare(a.Table, b.Table); c != 0 {
		return c
	}
	if a.Table == geoconfig.SlicesTable {
		return cmp.Compare(SliceID(a), SliceID(b))
	}
	return cmp.Compare(a.Name, b.Name)
}

// SliceID returns the slice that a key of the slices' table names, 0 for none.
func SliceID(key geoconfig.RowKey) ids.Slice {
	n, err := strconv.ParseUint(key.Name, 10, ids.SliceBits)
	if err != nil || key.Table != geoconfig.SlicesTable {
		return 0
	}
	return ids.Slice(n)
}
