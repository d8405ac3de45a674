package plan

import (
	"encoding/json"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// Collect adds a stored row to an answer; body nil stands for a row that was
// removed at rev.
func Collect(rows *geoconfig.Rows, key geoconfig.RowKey, body []byte, rev geoconfig.Revision) error {
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
	return nil
}

// Limit returns the number of rows that Follow aims at.
func Limit(limit int) int {
	if limit <= 0 || limit > geoconfig.MaxBatchRows {
		return geoconfig.MaxBatchRows
	}
	return limit
}
