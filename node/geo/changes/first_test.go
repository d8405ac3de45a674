package changes_test

import (
	"fmt"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/geo/changes"
)

func TestSetFirst_ListsTheSliceAtItsHome(t *testing.T) {
	store := found(t, version.Feature)
	b := geoconfig.Batch{Key: "slices", Nodes: []geoconfig.Node{{ID: "n1", Site: "oslo"}}}
	for _, id := range []ids.Slice{3, 7, 9} {
		row := geoconfig.SliceRow{ID: id, Epoch: 1, Active: "n1", Policy: geoconfig.Policy{Home: "oslo", Level: 1, Kind: geoconfig.Ordinary},
			Members: []geoconfig.Member{{Node: "n1", State: geoconfig.Normal}}}
		if id == 9 {
			row.Policy.Home = "gone"
		}
		b.Slices = append(b.Slices, geoconfig.SliceSwap{Row: row})
	}
	if _, err := store.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		id    ids.Slice
		first bool
		want  string
	}{{7, true, "[7]"}, {3, true, "[3 7]"}, {3, true, "[3 7]"}, {7, false, "[3]"}, {7, false, "[3]"}, {3, false, "[]"}} {
		if row, err := changes.SetFirst(t.Context(), store, order(), step.id, step.first); err != nil || row.ID != step.id {
			t.Fatalf("%+v: got %+v, %v", step, row, err)
		}
		if got := fmt.Sprint(sites(t, store)[1].First); got != step.want {
			t.Errorf("%+v: got %s", step, got)
		}
	}
	rows, err := store.Read(t.Context(), geoconfig.Query{Audit: 10})
	if err != nil || len(rows.Audit) != 4 || rows.Audit[0].Action != "slice.repair-in-turn" || rows.Audit[3].Action != "slice.repair-first" || rows.Audit[3].Subject != "slices/7" {
		t.Errorf("got the records %+v, %v", rows.Audit, err)
	}
	for _, id := range []ids.Slice{8, 9} {
		if _, err := changes.SetFirst(t.Context(), store, order(), id, true); !fault.Is(err, fault.NotFound) {
			t.Errorf("slice %d: got %v, want NotFound", id, err)
		}
	}
}
