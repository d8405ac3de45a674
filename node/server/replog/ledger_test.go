package replog

import (
	"bytes"
	"context"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/journal"
)

const slice ids.Slice = 7

func open(t *testing.T, dir string) (*store.Store, *Ledger, []replica.Restored) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir, ClusterID: "c", NodeID: "n", Journal: journal.Options{SegmentBytes: 1 << 20, TotalBytes: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	l := New(s)
	restored, err := l.Recover()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // closed before, mostly
	return s, l, restored
}

func put(t *testing.T, l *Ledger, records ...replica.Record) {
	t.Helper()
	done := make(chan error, 1)
	if err := l.Append(records, func(err error) { done <- err }); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the journal does not answer")
	}
}

func entry(serial ids.Serial, epoch ids.Epoch) replica.Record {
	return replica.Record{Kind: replica.RecordEntry, Slice: slice, Entry: &replica.Entry{Slice: slice, Serial: serial, Epoch: epoch,
		Time: hlc.Time(serial) << 16, Data: bytes.Repeat([]byte{1, 0, 0}, 1)}}
}

// TestLedger_AppendsMoreThanASegment journals in one turn what two segments of
// 1 MiB do not hold, with a row in the middle.
func TestLedger_AppendsMoreThanASegment(t *testing.T) {
	dir := t.TempDir()
	s, l, _ := open(t, dir)
	rows := replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)}
	records := []replica.Record{rows}
	for serial := ids.Serial(1); serial <= 30; serial++ {
		e := entry(serial, 1)
		e.Entry.Data = make([]byte, 100<<10)
		records = append(records, e)
		if serial == 10 {
			records = append(records, rows)
		}
	}
	put(t, l, records...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, restored := open(t, dir)
	if len(restored) != 1 || len(restored[0].Entries) != 30 {
		t.Fatalf("restored are %d slices, want one of 30 entries", len(restored))
	}
}

// fill makes the journal go on to other segments, with entries of a slice that
// is gone.
func fill(t *testing.T, l *Ledger) {
	t.Helper()
	for i := ids.Serial(1); i <= 12; i++ {
		e := entry(i, 1)
		e.Slice, e.Entry.Slice, e.Entry.Data = 9, 9, make([]byte, 400<<10)
		put(t, l, e)
	}
}

func row(epoch ids.Epoch) *geoconfig.SliceRow {
	return &geoconfig.SliceRow{ID: slice, Epoch: epoch, Active: "n", Policy: geoconfig.Policy{Level: 1},
		Members: []geoconfig.Member{{Node: "n", State: geoconfig.Normal}}}
}

func TestOpen_FindsWhatTheCheckpointDidNotCover(t *testing.T) {
	dir := t.TempDir()
	s, l, restored := open(t, dir)
	if len(restored) != 0 {
		t.Fatalf("a new directory holds %+v", restored)
	}
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)})
	for i := ids.Serial(1); i <= 10; i++ {
		put(t, l, entry(i, 1))
	}
	put(t, l, entry(9, 2), entry(10, 2)) // a newer epoch cut the tail
	put(t, l, replica.Record{Kind: replica.RecordIntent, Slice: slice, Row: row(2)})
	fill(t, l)
	b := s.Meta().NewBatch()
	if err := b.SetApplied(slice, 6); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	before := s.Journal().Tail()
	err := l.Checkpoint(context.Background(), l.Mark(), []State{{Slice: slice, Row: row(2), Known: true,
		Snapshot: replica.Snapshot{Serial: 6, Epoch: 1, Time: 6 << 16, Clients: []byte("clients")}}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Journal().Tail() <= before {
		t.Error("the checkpoint trimmed nothing")
	}
	fill(t, l) // trimmed segments are used again
	put(t, l, entry(11, 2))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, restored = open(t, dir)
	if len(restored) != 1 {
		t.Fatalf("got %d slices, want 1", len(restored))
	}
	r := restored[0]
	if r.Row.Epoch != 2 || !r.Intent || r.Base != 6 || r.BaseEpoch != 1 || r.Applied != 6 || r.ClientsAt != 6 || string(r.Clients) != "clients" {
		t.Errorf("got %+v, want row 2 with its intent, base and clients at 6", r)
	}
	var got []ids.Serial
	for _, e := range r.Entries {
		got = append(got, e.Serial)
		if want := ids.Epoch(1 + e.Serial/9); e.Epoch != min(want, 2) {
			t.Errorf("entry %d is of epoch %d, want %d", e.Serial, e.Epoch, want)
		}
	}
	if len(got) != 5 || got[0] != 7 || got[4] != 11 {
		t.Errorf("got entries %v, want 7 to 11", got)
	}
}
