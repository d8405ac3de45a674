package changes

import (
	"context"
	"fmt"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// SetFirst has a slice's repair go before that of others with as many copies left, or in
// turn with them, and returns the slice's row. The row of its home site says so. It
// changes nothing where that is so already. Errors: NotFound (the slice, or its home),
// Quota (too many slices go first), Conflict, and the store's.
func SetFirst(ctx context.Context, store geoconfig.Store, o Order, id ids.Slice, first bool) (geoconfig.SliceRow, error) {
	const op fault.Op = "changes.SetFirst"
	rows, err := store.Read(ctx, geoconfig.Query{SliceIDs: []ids.Slice{id}})
	if err != nil {
		return geoconfig.SliceRow{}, err
	}
	if len(rows.Slices) != 1 {
		return geoconfig.SliceRow{}, fault.E(fault.NotFound, op, fmt.Sprint("slice ", id), "is no slice; `cartwheel policy ls` lists them")
	}
	row := rows.Slices[0]
	s, err := site(ctx, store, row.Policy.Home)
	if err != nil {
		return row, err
	}
	i, listed := slices.BinarySearch(s.First, id)
	action := "slice.repair-in-turn"
	switch {
	case listed == first:
		return row, nil
	case !first:
		s.First = slices.Delete(s.First, i, i+1)
	case len(s.First) >= geoconfig.MaxFirst:
		return row, fault.Errorf(fault.Quota, op, fmt.Sprint("slice ", id), "%d slices at home at %s go first already: take some back with `cartwheel slice repair SLICE --in-turn`", len(s.First), s.Name)
	default:
		s.First, action = slices.Insert(s.First, i, id), "slice.repair-first"
	}
	s.Revision = o.match(s.Revision)
	return row, o.apply(ctx, store, geoconfig.Batch{Sites: []geoconfig.Site{s}}, action, geoconfig.SliceKey(id), "")
}
