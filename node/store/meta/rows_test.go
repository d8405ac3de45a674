package meta

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// TestBatch_WritesARowOnceAndInOrder removes names from a directory: each name
// costs three rows and a version of the directory, which itself is written once,
// as are the slice's state and the serial.
func TestBatch_WritesARowOnceAndInOrder(t *testing.T) {
	db := opened(t, vfs.NewMem())
	defer db.Close()
	const names = 20
	name := func(i int) []byte { return fmt.Appendf(nil, "name %d", i*7%names) }
	b := db.NewBatch()
	for i := range names {
		must(t, b.Put(1, name(i), []byte("v"), 1))
	}
	must(t, b.Put(1, []byte("dir"), []byte("v"), 1))
	must(t, b.Commit())
	b = db.NewBatch()
	for i := range names {
		must(t, b.Delete(1, name(i), uint64(10+i)))
		must(t, b.Put(1, []byte("dir"), fmt.Appendf(nil, "%d left", names-1-i), uint64(10+i)))
		must(t, b.Set(1, []byte("state"), []byte{byte(i)}))
		must(t, b.SetApplied(1, ids.Serial(i)))
	}
	_, err := b.rows.write(b.b)
	must(t, err)
	if got, want := b.b.Count(), uint32(4*names+3); got != want {
		t.Errorf("%d rows are written, want %d", got, want)
	}
	var last []byte
	for r := b.b.Reader(); ; {
		_, key, _, ok, err := r.Next()
		must(t, err)
		if !ok {
			break
		}
		if bytes.Compare(last, key) >= 0 {
			t.Errorf("row %q is written behind %q", key, last)
		}
		last = append(last[:0], key...)
	}
	must(t, b.Commit())
	db.DropCache() // which did not learn what was taken out above
	if v, _, err := db.Slice(1).Get([]byte("dir")); err != nil || string(v) != "0 left" {
		t.Errorf("got %q %v, want the last value", v, err)
	}
	if v, ok, err := db.Plain(1, []byte("state")); err != nil || !ok || !bytes.Equal(v, []byte{names - 1}) {
		t.Errorf("got %v %v, want the last state", v, err)
	}
	if n, err := db.Applied(1); err != nil || n != names-1 {
		t.Errorf("applied %d %v, want %d", n, err, names-1)
	}
}

// TestBatch_PutReplacesARemovalOfItsTime makes two rows of one key of
// history in one batch: the later one stands.
func TestBatch_PutReplacesARemovalOfItsTime(t *testing.T) {
	db := opened(t, vfs.NewMem())
	defer db.Close()
	b := db.NewBatch()
	must(t, b.Put(1, []byte("k"), []byte("first"), 5))
	must(t, b.Delete(1, []byte("k"), 7))
	must(t, b.Put(1, []byte("k"), []byte("second"), 7))
	must(t, b.Delete(1, []byte("k"), 9))
	must(t, b.Commit())
	for at, want := range map[uint64]string{5: "first", 6: "first", 7: "second", 8: "second", 9: ""} {
		if v, ok, err := db.SliceAt(1, at).Get([]byte("k")); err != nil || string(v) != want || ok != (want != "") {
			t.Errorf("at %d: got %q %v %v, want %q", at, v, ok, err, want)
		}
	}
}

func TestDropSlice_TakesWhatItsBatchWrote(t *testing.T) {
	db := opened(t, vfs.NewMem())
	defer db.Close()
	b := db.NewBatch()
	for _, s := range []ids.Slice{1, 2} {
		must(t, b.Put(s, []byte("k"), []byte("v"), 5))
		must(t, b.Set(s, []byte("row"), []byte("v")))
		must(t, b.SetApplied(s, 9))
	}
	must(t, b.DropSlice(1))
	must(t, b.Set(1, []byte("later"), nil))
	must(t, b.Commit())
	for s, want := range map[ids.Slice]bool{1: false, 2: true} {
		if _, ok, err := db.Slice(s).Get([]byte("k")); err != nil || ok != want {
			t.Errorf("slice %d: key there: %v %v, want %v", s, ok, err, want)
		}
		if _, ok, err := db.Plain(s, []byte("row")); err != nil || ok != want {
			t.Errorf("slice %d: row there: %v %v, want %v", s, ok, err, want)
		}
	}
	if _, ok, err := db.Plain(1, []byte("later")); err != nil || !ok {
		t.Errorf("an empty row written behind the dropping is there: %v %v, want true", ok, err)
	}
}

func TestBatch_EmptyValueIsARow(t *testing.T) {
	db := opened(t, vfs.NewMem())
	defer db.Close()
	b := &Batch{db: db, b: db.p.NewBatch(), rows: newRows()} // none that was used before
	must(t, b.Set(1, []byte("row"), nil))
	must(t, b.Commit())
	if v, ok, err := db.Plain(1, []byte("row")); err != nil || !ok || len(v) != 0 {
		t.Errorf("got %q %v %v, want an empty row", v, ok, err)
	}
}

// TestRows_EqualHashesAreKeptApart pretends that the hashes of two keys are
// equal.
func TestRows_EqualHashesAreKeptApart(t *testing.T) {
	r := newRows()
	one, two := []byte("one"), []byte("two")
	r.note(one, []byte("1"))
	_, h := r.noted(two)
	r.last[h] = 0
	if w, _ := r.noted(two); w != nil {
		t.Fatalf("got the row of %q for %q", w.key, two)
	}
	r.note(two, []byte("2"))
	_, of := r.noted(one)
	r.last[of] = r.last[h]
	for k, want := range map[string]string{"one": "1", "two": "2"} {
		if w, _ := r.noted([]byte(k)); w == nil || string(w.value) != want {
			t.Errorf("got %v for %q, want the value %q", w, k, want)
		}
	}
}

func TestRows_AreRemoved(t *testing.T) {
	db := opened(t, vfs.NewMem())
	defer db.Close()
	next := ids.Slice(0)
	fill := func() ids.Slice {
		b := db.NewBatch()
		next++
		for _, k := range []string{"a", "b", "c"} {
			must(t, b.Put(next, []byte(k), []byte("v"), 5))
			must(t, b.Put(next, []byte(k), []byte("w"), 9))
			must(t, b.Set(next, []byte(k), []byte("v")))
		}
		must(t, b.Set(next, []byte("\x00own"), nil))
		must(t, b.SetApplied(next, 9))
		must(t, b.Commit())
		return next
	}
	left := func(s ids.Slice) []Row {
		f := db.Freeze()
		rows, err := f.Rows(s, Row{}, 1<<20)
		must(t, err)
		must(t, f.Close())
		return rows
	}
	all, after := left(fill()), fill() // three of each area, and the own one
	if len(all) != 10 {
		t.Fatalf("got %d rows, want 10", len(all))
	}
	changed := func(f func(b *Batch, s ids.Slice) error) []Row {
		t.Helper()
		b, s := db.NewBatch(), fill()
		beside := fill()
		must(t, f(b, s))
		must(t, b.Commit())
		if x, y := len(left(beside)), len(left(after)); x != 10 || y != 10 {
			t.Fatalf("other slices have %d and %d rows, want 10", x, y)
		}
		return left(s)
	}
	for i := range all {
		got := changed(func(b *Batch, s ids.Slice) error { return b.Remove(s, all[i]) })
		if len(got) != 9 || slices.ContainsFunc(got, func(r Row) bool { return r.Compare(all[i]) == 0 }) {
			t.Errorf("without row %d there are %d rows", i, len(got))
		}
		spared := 0
		if i < 6 {
			spared = 1 // the own row is behind it
		}
		if got = changed(func(b *Batch, s ids.Slice) error { return b.RemoveBehind(s, all[i], 0) }); len(got) != i+1+spared {
			t.Errorf("behind row %d: %d rows are left, want %d", i, len(got), i+1+spared)
		}
	}
	if got := changed(func(b *Batch, s ids.Slice) error { return b.RemoveMarks(s, 0) }); len(got) != 9 {
		t.Errorf("without marks there are %d rows, want 9", len(got))
	}
	if serial, err := db.Applied(next - 1); err != nil || serial != 0 {
		t.Errorf("applied is %d, %v; want none", serial, err)
	}
	b := db.NewBatch()
	defer b.Abandon()
	if err := b.Remove(1, Row{Area: 3}); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a row of no known area: %v", err)
	}
}
