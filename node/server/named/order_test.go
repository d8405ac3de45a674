package named

import (
	"context"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/version"
)

// TestOrder_MakesAChangeOnceAndRecordsIt makes changes as a request orders them.
func TestOrder_MakesAChangeOnceAndRecordsIt(t *testing.T) {
	x := startScheduled(t, 2, version.Schedules)
	l := x.lists[0]
	ctx := With(x.ctx, Order{Key: "k", From: "192.0.2.1"})
	s, err := l.Make(ctx, Snapshot{Name: "nightly", By: "eve"}, time.Hour, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.lists[1].Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	if all, _ := x.lists[1].All(); len(all) != 1 || all[0].Revision() != s.Revision() || s.Revision() == 0 {
		t.Errorf("another node has %+v, want revision %d", all, s.Revision())
	}
	for range 2 { // the second one finds nothing to do, by its key
		if err := l.remove(ctx, s.Name, s.revision, AuditDelete, "eve"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.MakeSchedule(ctx, Schedule{Name: "hourly", By: "eve", Every: time.Hour, Keep: 90 * time.Minute}, false); err != nil {
		t.Fatal(err)
	}
	if got := l.Schedules()[0]; got.Revision() == 0 || got.Snapshots() != 3 {
		t.Errorf("got revision %d and %d snapshots, want three", got.Revision(), got.Snapshots())
	}
	x.make("plain", time.Hour, time.Hour)
	rows, err := x.store.Read(x.ctx, geoconfig.Query{Audit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range rows.Audit {
		got = append(got, a.Action+" "+a.Subject+" "+a.Detail)
	}
	want := []string{"schedule.create records/snapshot/plain ", "schedule.create records/snapshot/hourly (from 192.0.2.1)",
		"snapshot.delete records/snapshot/nightly (from 192.0.2.1)", "snapshot.create records/snapshot/nightly (from 192.0.2.1)"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}
