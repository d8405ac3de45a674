package inmem

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/plan"
)

// recordKeys lists the records of a kind with names above one, in order.
func (s *Store) recordKeys(kind, after string) []geoconfig.RowKey {
	above, below := plan.RecordRange(kind, after)
	var keys []geoconfig.RowKey
	for key := range s.rows {
		if key.Table == geoconfig.RecordsTable && key.Name > above && key.Name < below {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, plan.CompareKeys)
	return keys
}

// queriedRecords resolves the records that a query asks for, each once.
func (s *Store) queriedRecords(q geoconfig.Query) (keys []geoconfig.RowKey, more bool) {
	if q.Records > 0 {
		keys = s.recordKeys(q.RecordKind, q.RecordsAfter)
	}
	if len(keys) > q.Records {
		keys, more = keys[:q.Records], true
	}
	for _, k := range q.RecordKeys {
		if _, ok := s.rows[k.Row()]; ok {
			keys = append(keys, k.Row())
		}
	}
	slices.SortFunc(keys, plan.CompareKeys)
	return slices.Compact(keys), more
}
