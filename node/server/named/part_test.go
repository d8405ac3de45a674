package named

import (
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
)

// TestPart_IsKnownToEveryNode makes a snapshot of a part of the tree beside one of all.
func TestPart_IsKnownToEveryNode(t *testing.T) {
	x := startScheduled(t, 2, version.Parts)
	want, err := x.lists[0].Make(x.ctx, Snapshot{Name: "part", By: "eve", Root: 77, Path: "/reports"}, time.Hour, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.lists[0].Make(x.ctx, Snapshot{Name: "whole", By: "eve"}, 0, false); err != nil {
		t.Fatal(err)
	}
	got, err := x.lists[1].Resolve(x.ctx, "part")
	if err != nil || got != want || got.Root != 77 || got.Path != "/reports" || got.ExpiresNS == 0 {
		t.Errorf("another node knows %+v, %v, want %+v", got, err, want)
	}
	if got, err := x.lists[1].Resolve(x.ctx, "whole"); err != nil || got.Root != 0 || got.Path != "" {
		t.Errorf("of the whole tree another node knows %+v, %v", got, err)
	}
	records, err := x.lists[1].Records()
	if err != nil || len(records) != 2 || records[0].Form != partForm || records[1].Form != form {
		t.Errorf("a rebuilt geo-config gets %+v, %v", records, err)
	}
}

// TestPart_SurvivesAStartWithoutGeoConfig reads the list that lies beside the data.
func TestPart_SurvivesAStartWithoutGeoConfig(t *testing.T) {
	x := startScheduled(t, 1, version.Parts)
	l := x.lists[0]
	l.o.File = t.TempDir() + "/snapshots"
	want, err := l.Make(x.ctx, Snapshot{Name: "part", By: "eve", Root: 77, Path: "/reports"}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	o := l.o
	o.Store = nil
	again, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Resolve(x.ctx, "part"); err != nil || got.Root != want.Root || got.Path != want.Path || got.Time != want.Time {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestPart_RefusesWhatCannotBe(t *testing.T) {
	x := startScheduled(t, 1, version.Parts)
	for _, s := range []Snapshot{{Name: "x", Path: "/reports"}, {Name: "x", Root: 7}, {Name: "x", Root: 7, Path: "reports"}, {Name: "x", Root: 7, Path: "/" + strings.Repeat("a", maxPath)}} {
		s.By = "eve"
		if _, err := x.lists[0].Make(x.ctx, s, 0, false); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: got %v, want Invalid", s, err)
		}
	}
	x = startScheduled(t, 1, version.Schedules)
	if _, err := x.lists[0].Make(x.ctx, Snapshot{Name: "x", By: "eve", Root: ids.Object(7), Path: "/reports"}, 0, false); !fault.Is(err, fault.NotSupported) {
		t.Errorf("before all nodes know parts: got %v, want NotSupported", err)
	}
	if _, err := x.lists[0].Make(x.ctx, Snapshot{Name: "x", By: "eve"}, 0, false); err != nil {
		t.Errorf("of the whole tree then: %v", err)
	}
}

// TestPart_IsNeverTakenForTheWhole reads records whose form and body do not agree.
func TestPart_IsNeverTakenForTheWhole(t *testing.T) {
	for of, body := range map[int]string{form: `{"hlc":5,"root":7,"path":"/a"}`, partForm: `{"hlc":5}`} {
		x := startScheduled(t, 1, version.Parts)
		r := geoconfig.Record{Kind: kind, Name: "odd", Form: of, Body: []byte(body)}
		if _, err := x.store.Apply(x.ctx, geoconfig.Batch{Key: "odd", Records: []geoconfig.Record{r}}); err != nil {
			t.Fatal(err)
		}
		if _, err := x.lists[0].Resolve(x.ctx, "odd"); !fault.Is(err, fault.Corrupt) {
			t.Errorf("form %d with %s: got %v, want Corrupt", of, body, err)
		}
	}
}
