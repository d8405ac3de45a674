package replica

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// TestRestore_ReplacesAStateAheadOfItsJournal starts a node whose journal lost
// its end, which the state has already. The node receives a new state, and does
// not stop.
func TestRestore_ReplacesAStateAheadOfItsJournal(t *testing.T) {
	row := geoconfig.SliceRow{ID: 1, Epoch: 3, Active: "b", Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{
		{Node: "a", State: geoconfig.Normal, Incarnation: 1}, {Node: "b", State: geoconfig.Normal, Incarnation: 1}}}
	n := New(Config{Self: "a", Incarnation: 1, Boot: 1, Start: time.Hour})
	r := Restored{Row: row, Applied: 7}
	for s := ids.Serial(1); s <= 5; s++ {
		r.Entries = append(r.Entries, &Entry{Slice: 1, Serial: s, Epoch: 1, Time: hlc.Time(s)})
	}
	if err := n.Restore(time.Hour, r); err != nil {
		t.Fatalf("the node does not start: %v", err)
	}
	if _, whole := n.Snapshot(1); whole {
		t.Error("the copy counts as whole")
	}
	n.Tick(time.Hour + 50*time.Millisecond)
	out := n.Flush(time.Hour + 50*time.Millisecond)
	if len(out.Transfers) != 1 || len(out.Transfers[0].Sources) != 1 || out.Transfers[0].Sources[0] != "b" {
		t.Errorf("got the transfers %+v, want one from b", out.Transfers)
	}
	for _, rec := range out.Records {
		if rec.Kind == RecordReset {
			t.Error("what is on the disk was voided before the state was found elsewhere")
		}
	}
}
