package index

import (
	"encoding/base64"
	"fmt"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// Cursor names the place behind a row.
func (q *Query) Cursor(r *geoconfig.SliceRow) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %t %s", rowKey(q.Sort, r), r.ID, q.Descending, q.Sort))
}

// Resume has the query begin behind the place that a cursor names.
func (q *Query) Resume(cursor string) error {
	const op fault.Op = "index.Resume"
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return fault.E(fault.Invalid, op, "cursor", "is not one that this API gave: begin at the first page")
	}
	var descending bool
	var sort string
	if _, err := fmt.Sscanf(string(raw), "%d %d %t %s", &q.afterKey, &q.afterID, &descending, &sort); err != nil {
		return fault.E(fault.Invalid, op, "cursor", "is not one that this API gave: begin at the first page")
	}
	if descending != q.Descending || sort != q.Sort {
		return fault.E(fault.Invalid, op, "cursor", "is of a list in another order: begin at the first page")
	}
	q.hasAfter = true
	return nil
}

// rowKey is what entry.key is for the row.
func rowKey(sort string, r *geoconfig.SliceRow) int64 {
	e := entry{id: r.ID, level: int32(r.Policy.Level), normals: int32(Normals(r)), epoch: r.Epoch, revision: r.Revision}
	return e.key(sort)
}
