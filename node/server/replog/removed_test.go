package replog

import (
	"context"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store"
)

// given is the row of an epoch in which the slice belongs to others.
func given(epoch ids.Epoch) replica.Record {
	return replica.Record{Kind: replica.RecordRow, Slice: slice, Row: &geoconfig.SliceRow{ID: slice, Epoch: epoch, Active: "m",
		Policy: geoconfig.Policy{Level: 1}, Members: []geoconfig.Member{{Node: "m", State: geoconfig.Normal}}}}
}

func taken(epoch ids.Epoch) replica.Record {
	return replica.Record{Kind: replica.RecordRow, Slice: slice, Row: &geoconfig.SliceRow{ID: slice, Epoch: epoch, Active: "m",
		Policy:  geoconfig.Policy{Level: 2},
		Members: []geoconfig.Member{{Node: "m", State: geoconfig.Normal}, {Node: "n", State: geoconfig.Migrating}}}}
}

func reset(base ids.Serial, epoch ids.Epoch) replica.Record {
	return replica.Record{Kind: replica.RecordReset, Slice: slice, Base: base, BaseEpoch: epoch, BaseTime: hlc.Time(base) << 16}
}

func complete(base ids.Serial, epoch ids.Epoch) replica.Record {
	r := reset(base, epoch)
	r.Kind = replica.RecordComplete
	return r
}

// apply brings the metadata to a serial.
func apply(t *testing.T, s *store.Store, serial ids.Serial) {
	t.Helper()
	b := s.Meta().NewBatch()
	if err := b.SetApplied(slice, serial); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}

// drop throws the slice's metadata away, as a server does.
func drop(t *testing.T, s *store.Store) {
	t.Helper()
	b := s.Meta().NewBatch()
	if err := b.DropSlice(slice); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}

func checkpoint(t *testing.T, l *Ledger, state State) {
	t.Helper()
	if err := l.Checkpoint(context.Background(), l.Mark(), []State{state}); err != nil {
		t.Fatal(err)
	}
}

func at(serial ids.Serial, epoch ids.Epoch) replica.Snapshot {
	return replica.Snapshot{Serial: serial, Epoch: epoch, Time: hlc.Time(serial) << 16, Clients: []byte{0}}
}

// again closes the store and opens it as the next life does, and has the core
// take what is found.
func again(t *testing.T, s *store.Store, dir string) (*store.Store, *Ledger, replica.Restored, *replica.Node) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, l, restored := open(t, dir)
	if len(restored) != 1 {
		t.Fatalf("got %d slices, want 1", len(restored))
	}
	core := replica.New(replica.Config{Self: "n", Boot: 2})
	if err := core.Restore(0, restored[0]); err != nil {
		t.Fatalf("the node does not start: %v", err)
	}
	return s, l, restored[0], core
}

// had makes a directory whose node had a checkpoint at 6 and the entries to 10
// of which the journal has only those from 7 on.
func had(t *testing.T, dir string) (*store.Store, *Ledger) {
	t.Helper()
	s, l, _ := open(t, dir)
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)})
	for i := ids.Serial(1); i <= 6; i++ {
		put(t, l, entry(i, 1))
	}
	fill(t, l)
	for i := ids.Serial(7); i <= 10; i++ {
		put(t, l, entry(i, 1))
	}
	apply(t, s, 6)
	before := s.Journal().Tail()
	checkpoint(t, l, State{Slice: slice, Row: row(1), Known: true, Snapshot: at(6, 1)})
	if s.Journal().Tail() <= before {
		t.Fatal("the checkpoint trimmed nothing")
	}
	apply(t, s, 10)
	return s, l
}

func TestRemoval_NodeStartsAfterIt(t *testing.T) {
	for name, records := range map[string][]replica.Record{
		"with the reset":    {given(5), reset(0, 0)},
		"without the reset": {given(5)}, // the crash came in between
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, l := had(t, dir)
			put(t, l, records...)
			drop(t, s)
			for range 2 { // each start finds the same
				var r replica.Restored
				var core *replica.Node
				s, l, r, core = again(t, s, dir)
				if r.Row.Epoch != 5 || !r.Incomplete || r.Base != 0 || len(r.Entries) != 0 || r.Applied != 0 {
					t.Fatalf("got %+v, want a tombstone with nothing behind it", r)
				}
				if _, whole := core.Snapshot(slice); whole {
					t.Fatal("the copy counts as whole")
				}
			}
			checkpoint(t, l, State{Slice: slice, Row: given(5).Row, Gone: true})
			put(t, l, taken(8))
			_, _, r, core := again(t, s, dir)
			if r.Row.Epoch != 8 || !r.Incomplete {
				t.Errorf("got %+v, want an incomplete copy at epoch 8", r)
			}
			if _, whole := core.Snapshot(slice); whole {
				t.Error("the copy counts as whole once the node is a member again")
			}
		})
	}
}

// TestRemoval_LostDropLeavesNoWholeCopy crashes before the drop is on disk.
func TestRemoval_LostDropLeavesNoWholeCopy(t *testing.T) {
	for _, c := range []struct {
		name    string
		records []replica.Record
	}{
		{"with the reset", []replica.Record{given(5), reset(0, 0), taken(8)}},
		{"without the reset", []replica.Record{given(5), taken(8)}},
		{"the row alone", []replica.Record{given(5)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s, l := had(t, dir)
			put(t, l, c.records...)
			_, _, r, core := again(t, s, dir)
			if _, whole := core.Snapshot(slice); whole || !r.Incomplete {
				t.Errorf("got %+v, which counts as whole", r)
			}
		})
	}
}

// TestRemoval_ACopyAfterItIsWhole makes a copy after the removal. It is whole,
// whatever the journal still has from before.
func TestRemoval_ACopyAfterItIsWhole(t *testing.T) {
	for _, saved := range []bool{false, true} {
		dir := t.TempDir()
		s, l := had(t, dir)
		put(t, l, given(5), reset(0, 0))
		drop(t, s)
		put(t, l, taken(8), reset(20, 7), entry(21, 8))
		b := s.Meta().NewBatch()
		if err := SaveBase(b, slice, at(20, 7)); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
		apply(t, s, 20)
		put(t, l, complete(20, 7), entry(22, 8))
		want := at(20, 7)
		if saved {
			apply(t, s, 22)
			want = at(22, 8)
			checkpoint(t, l, State{Slice: slice, Row: taken(8).Row, Known: true, Snapshot: want})
		}
		_, _, r, core := again(t, s, dir)
		if r.Incomplete || r.Base != want.Serial || r.ClientsAt != want.Serial || len(r.Clients) == 0 || len(r.Entries) != int(22-want.Serial) {
			t.Errorf("saved %v: got %+v, want base and clients at %d and the entries to 22", saved, r, want.Serial)
		}
		if _, whole := core.Snapshot(slice); !whole {
			t.Errorf("saved %v: the copy does not count as whole", saved)
		}
	}
}

// TestReset_BelowTheCheckpointVoidsIt replaces the state of a member that may
// have been ahead of what it gets.
func TestReset_BelowTheCheckpointVoidsIt(t *testing.T) {
	dir := t.TempDir()
	s, l := had(t, dir)
	put(t, l, taken(4), reset(5, 1), entry(6, 3))
	_, _, r, core := again(t, s, dir)
	if _, whole := core.Snapshot(slice); whole || !r.Incomplete || r.Base != 5 {
		t.Errorf("got %+v, want an incomplete copy at 5", r)
	}
}
