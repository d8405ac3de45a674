package replog

import (
	"fmt"
	"testing"

	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
)

// TestUnheld_OutlivesTheJournal applies an entry without its chunks. That stays
// known after the journal was trimmed, until the chunks are here. It is not
// known of a copy that counts for nothing.
func TestUnheld_OutlivesTheJournal(t *testing.T) {
	dir := t.TempDir()
	s, l, _ := open(t, dir)
	named := entry(2, 1).Entry
	named.Chunks = make([]byte, 64)
	put(t, l, replica.Record{Kind: replica.RecordRow, Slice: slice, Row: row(1)}, entry(1, 1), entry(2, 1), entry(3, 1))
	apply(t, s, 3)
	change(t, s.Meta(), func(b *meta.Batch) error { return SaveUnheld(b, named) })
	fill(t, l)
	checkpointAt(t, l, l.Mark(), whole(3))
	s, l, r := reopen(t, dir, s)
	if want := []replica.EntryID{{Serial: 2, Epoch: 1}}; fmt.Sprint(r.Unheld) != fmt.Sprint(want) || len(r.Entries) != 0 {
		t.Errorf("applied without their chunks: %v, want %v; %d entries in the journal, want none", r.Unheld, want, len(r.Entries))
	}
	put(t, l, reset(2, 1))
	s, _, r = reopen(t, dir, s)
	if len(r.Unheld) != 0 {
		t.Errorf("of a copy that counts for nothing: %v", r.Unheld)
	}
	change(t, s.Meta(), func(b *meta.Batch) error { return DropUnheld(b, slice, 2) })
	err := EachUnheld(s.Meta(), slice, func(e replica.EntryID, _ []byte) { t.Errorf("still noted: %v", e) })
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnheld_RefusesAMalformedNote stores a note of another shape, which is not
// passed over.
func TestUnheld_RefusesAMalformedNote(t *testing.T) {
	s, _, _ := open(t, t.TempDir())
	change(t, s.Meta(), func(b *meta.Batch) error { return b.Set(slice, unheldKey(4), []byte("short")) })
	if err := EachUnheld(s.Meta(), slice, func(replica.EntryID, []byte) {}); err == nil {
		t.Error("a malformed note was passed over")
	}
	if err := EachUnheld(s.Meta(), slice+1, func(e replica.EntryID, _ []byte) { t.Errorf("of another slice: %v", e) }); err != nil {
		t.Error(err)
	}
}

func TestIsUnheld_KnowsItsNotes(t *testing.T) {
	value := append(make([]byte, 8), "addresses"...)
	for _, x := range []struct {
		name       string
		key, value []byte
		want       bool
	}{
		{"a note", unheldKey(4), value, true},
		{"a note that is cut short", unheldKey(4), value[:7], false},
		{"a longer key", append(unheldKey(4), 0), value, false},
		{"another key of the ledger", []byte("\x00applied12345678"), value, false},
		{"a key of the tree", []byte("unheld-12345678"), value, false},
	} {
		addresses, ok := IsUnheld(x.key, x.value)
		if ok != x.want || ok && string(addresses) != "addresses" {
			t.Errorf("%s: got %q, %v, want %v", x.name, addresses, ok, x.want)
		}
	}
}

func change(t *testing.T, db *meta.DB, f func(*meta.Batch) error) {
	t.Helper()
	b := db.NewBatch()
	if err := f(b); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}
