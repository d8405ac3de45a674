package replog

import (
	"context"
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store"
)

// whole is a slice's whole state at a serial.
func whole(serial ids.Serial) State {
	return State{Slice: slice, Row: row(1), Known: true, Snapshot: at(serial, 1)}
}

// copying is a state on its way in, as of a serial.
func copying(base, applied ids.Serial) State {
	return State{Slice: slice, Row: row(1), Copying: &replica.Incomplete{Base: base, BaseEpoch: 1, Begun: true, At: at(applied, 1)}}
}

func checkpointAt(t *testing.T, l *Ledger, m Mark, states ...State) {
	t.Helper()
	if err := l.Checkpoint(context.Background(), m, states); err != nil {
		t.Fatal(err)
	}
}

// reopen starts anew and returns what is found of the one slice.
func reopen(t *testing.T, dir string, s *store.Store) (*store.Store, *Ledger, replica.Restored) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, l, restored := open(t, dir)
	if len(restored) != 1 {
		t.Fatalf("got %d slices, want 1", len(restored))
	}
	return s, l, restored[0]
}

func TestCheckpoint_KeepsWhatItsStatesLack(t *testing.T) {
	dir := t.TempDir()
	s, l, _ := open(t, dir)
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)}, entry(1, 1))
	apply(t, s, 1)
	fill(t, l)
	mark := l.Mark()
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(2)})
	fill(t, l)
	checkpointAt(t, l, mark, whole(1))
	fill(t, l)
	if _, _, r := reopen(t, dir, s); r.Row.Epoch != 2 {
		t.Errorf("the row is of epoch %d: the durable epoch 2 is forgotten", r.Row.Epoch)
	}
}

func TestReset_AfterTheStatesOutlivesTheCheckpoint(t *testing.T) {
	dir := t.TempDir()
	s, l, _ := open(t, dir)
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)}, entry(1, 1), entry(2, 1), entry(3, 1))
	apply(t, s, 3)
	mark := l.Mark()
	put(t, l, reset(2, 1)) // below the serial of the states
	drop(t, s)
	fill(t, l)
	checkpointAt(t, l, mark, whole(3))
	_, _, r := reopen(t, dir, s)
	if !r.Incomplete || r.Base != 2 || len(r.Entries) != 0 {
		t.Errorf("got %+v: an empty copy counts as whole", r)
	}
}

func TestReset_BeforeTheStatesVoidsOnlyWhatWasBefore(t *testing.T) {
	dir := t.TempDir()
	s, l, _ := open(t, dir)
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)}, entry(1, 1), entry(2, 1), entry(3, 1), entry(4, 1))
	put(t, l, reset(2, 1)) // 3 and 4 were never committed
	put(t, l, replica.Record{Kind: replica.RecordComplete, Slice: slice, Base: 2, BaseEpoch: 1}, entry(3, 2))
	apply(t, s, 2)
	checkpointAt(t, l, l.Mark(), whole(2))
	_, _, r := reopen(t, dir, s)
	if r.Incomplete || r.Base != 2 || len(r.Entries) != 1 || r.Entries[0].Epoch != 2 {
		t.Errorf("got %+v, want the whole copy at 2 and the entry that follows", r)
	}
}

// TestCheckpoint_TrimsBesideAnIncompleteCopy lets a copy take long. It must not
// keep the journal of the other slices.
func TestCheckpoint_TrimsBesideAnIncompleteCopy(t *testing.T) {
	dir := t.TempDir()
	s, l, _ := open(t, dir)
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)}, reset(100, 1))
	most := int64(0)
	for i := range 10 { // 48 MB, of a journal that holds 16
		fill(t, l)
		serial := ids.Serial(101 + i)
		put(t, l, entry(serial, 1))
		apply(t, s, serial)
		most = max(most, s.Journal().Bytes())
		checkpointAt(t, l, l.Mark(), copying(100, serial))
	}
	t.Logf("the journal had %d bytes at most", most)
	_, _, r := reopen(t, dir, s)
	if !r.Incomplete || r.Base != 100 || len(r.Entries) != 0 {
		t.Errorf("got %+v, want the copy that began at 100", r)
	}
}

func TestCopy_IsWholeFromItsLastCheckpointOn(t *testing.T) {
	dir := t.TempDir()
	s, l, _ := open(t, dir)
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)}, reset(100, 1), entry(101, 1), entry(102, 1), entry(103, 1))
	apply(t, s, 101)
	checkpointAt(t, l, l.Mark(), copying(100, 101))
	put(t, l, entry(102, 2)) // a newer epoch cut the tail
	fill(t, l)
	apply(t, s, 102)
	checkpointAt(t, l, l.Mark(), copying(100, 102))
	put(t, l, complete(102, 2), entry(103, 2))
	s, l, r := reopen(t, dir, s)
	if r.Incomplete || r.Base != 102 || len(r.Entries) != 1 || r.Entries[0].Epoch != 2 {
		t.Fatalf("got %+v, want the copy at 102 and the entry 103", r)
	}
	apply(t, s, 103)
	checkpointAt(t, l, l.Mark(), whole(103))
	if _, _, r := reopen(t, dir, s); r.Incomplete || r.Base != 103 || len(r.Entries) != 0 {
		t.Errorf("got %+v, want the whole copy at 103", r)
	}
}

func TestCopy_BegunByAnEarlierVersionBeginsAnew(t *testing.T) {
	dir := t.TempDir()
	s, l, _ := open(t, dir)
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)}, reset(100, 1))
	checkpointAt(t, l, l.Mark(), copying(100, 100))
	b := s.Meta().NewBatch()
	if err := b.Set(0, delayedKey(slice, 101), []byte("an entry")); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	put(t, l, complete(100, 1))
	if _, _, r := reopen(t, dir, s); !r.Incomplete || len(r.Entries) != 0 {
		t.Errorf("got %+v: what waited for the copy is not in it", r)
	}
}
