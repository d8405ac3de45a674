package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/drill"
)

// TestDrills_AreListedTheNewestFirst lists drills, also while the store is away.
func TestDrills_AreListedTheNewestFirst(t *testing.T) {
	f := newFleet(t, 1)
	if d := get[view.List[view.Drill]](f, "/drills"); len(d.Items) != 0 || d.Items == nil {
		t.Errorf("got %+v, want none", d)
	}
	for i, r := range []drill.Record{
		{ID: "20261127T1", Kind: drill.Cut, Site: "oslo", By: "ann", AtNS: 1e18, LastedMS: 15_000, Stopped: drill.Time, WritePauseMS: 4000, Acknowledged: 100, WholeMS: 900, Streams: []drill.Stream{{Site: "lima", UsualMS: 60}}},
		{ID: "20261127T2", Kind: drill.KillActive, By: "bob", AtNS: 1e18 + 1, Stopped: drill.Pause, WholeMS: -1},
	} {
		if err := drill.Add(t.Context(), f.store, func(kind string) string { return fmt.Sprint(kind, i) }, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, away := range []bool{false, true} {
		f.store.away.Store(away)
		d := get[view.List[view.Drill]](f, "/drills")
		if len(d.Items) != 2 || d.Total != 2 || d.Items[0].Who != "bob" || d.Items[0].WholeMS != nil || d.Freshness.GeoConfig.Reachable == away {
			t.Fatalf("with the store away: %v: got %+v", away, d)
		}
		if o := d.Items[1]; o.WriteMS != 4000 || o.Writes != 100 || *o.WholeMS != 900 || o.Stopped != "time" || o.Streams[0].UsualMS != 60 || o.StartedAt.UnixNano() != 1e18 {
			t.Errorf("got %+v", o)
		}
	}
	empty := newFleet(t, 1)
	empty.store.away.Store(true)
	if w := empty.request(http.MethodGet, "/api/v1/drills", "viewer", nil); w.Code != http.StatusBadGateway {
		t.Errorf("with the store away, and nothing read before: got %d", w.Code)
	}
}
