package operate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// twin is a source of a slice's state and the copy of it, whose rows come while
// both apply entries.
type twin struct {
	t            *testing.T
	source, copy *meta.DB
	in           *incoming
	history      [][]tree.Mutation // of the entries 1 and on
	applied      int               // by the copy
}

const twinSlice ids.Slice = 7

func newTwin(t *testing.T) *twin {
	t.Helper()
	w := &twin{t: t, in: &incoming{}}
	for _, db := range []**meta.DB{&w.source, &w.copy} {
		opened, err := meta.Open("meta", meta.Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		*db = opened
	}
	return w
}

func (w *twin) write(db *meta.DB, serial int, mutations []tree.Mutation) {
	w.t.Helper()
	b := db.NewBatch()
	err := ApplyEntry(b, nil, &replica.Entry{Slice: twinSlice, Serial: ids.Serial(serial), Time: hlc.Time(serial << 16)}, mutations, nil)
	if err == nil {
		err = b.Commit()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// change has the source apply an entry that sets or removes some keys: versioned
// ones and plain ones.
func (w *twin) change(chance *rand.Rand, keys int) {
	var mutations []tree.Mutation
	for range 1 + chance.IntN(3) {
		kind := "e" // a name: versioned
		if chance.IntN(3) == 0 {
			kind = string(rune(1)) // the slice's state: plain
		}
		m := tree.Mutation{Key: fmt.Appendf([]byte(kind), "%03d", chance.IntN(keys))}
		if chance.IntN(3) > 0 {
			m.Value = fmt.Appendf(nil, "%d", len(w.history)+1)
		}
		mutations = append(mutations, m)
	}
	w.history = append(w.history, mutations)
	w.write(w.source, len(w.history), mutations)
}

// follow has the copy apply some of the entries that it lacks.
func (w *twin) follow(most int) {
	for ; most > 0 && w.applied < len(w.history); most-- {
		w.applied++
		e := ids.Serial(w.applied)
		w.write(w.copy, w.applied, w.in.missing(w.history[w.applied-1], e))
		w.in.reached(replica.EntryID{Serial: e, Epoch: 1})
	}
}

// page brings the next rows over, of about so many bytes.
func (w *twin) page(behind *meta.Row, bytes int) (last bool) {
	w.t.Helper()
	frozen := w.source.Freeze()
	defer frozen.Close()
	rows, err := frozen.Rows(twinSlice, *behind, bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	b := w.copy.NewBatch()
	for i := range rows {
		if err := b.Restore(twinSlice, rows[i]); err != nil {
			w.t.Fatal(err)
		}
		*behind = meta.Row{Area: rows[i].Area, Key: rows[i].Key}
	}
	if err := b.Commit(); err != nil {
		w.t.Fatal(err)
	}
	w.in.ahead = append(w.in.ahead, Page{End: *behind, Last: len(rows) == 0, At: replica.EntryID{Serial: ids.Serial(len(w.history)), Epoch: 1}})
	w.in.reached(replica.EntryID{Serial: ids.Serial(w.applied), Epoch: 1})
	return len(rows) == 0
}

// rows is all that a store has of the slice.
func (w *twin) rows(db *meta.DB) string {
	w.t.Helper()
	frozen := db.Freeze()
	defer frozen.Close()
	rows, err := frozen.Rows(twinSlice, meta.Row{}, 1<<30)
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("%q", rows)
}

func TestCopy_EqualsItsSource(t *testing.T) {
	for seed := range uint64(200) {
		chance := rand.New(rand.NewPCG(seed, 0))
		w := newTwin(t)
		keys := 2 + chance.IntN(40)
		for range chance.IntN(60) {
			w.change(chance, keys)
		}
		w.applied = len(w.history)
		w.in.epoch = 1
		for behind := (meta.Row{}); !w.page(&behind, 1+chance.IntN(200)); {
			for range chance.IntN(12) {
				w.change(chance, keys)
				w.follow(chance.IntN(3))
			}
		}
		for range chance.IntN(5) {
			w.change(chance, keys)
		}
		w.follow(len(w.history))
		if !w.in.all || w.in.differs != nil {
			t.Fatalf("seed %d: all rows are said to be there: %v, %v", seed, w.in.all, w.in.differs)
		}
		if source, got := w.rows(w.source), w.rows(w.copy); source != got {
			t.Fatalf("seed %d: the copy has\n%s\nits source\n%s", seed, got, source)
		}
	}
}

func TestCopy_FindsASourceWithAnotherHistory(t *testing.T) {
	for _, c := range []struct {
		name    string
		applied ids.Serial
		epoch   ids.Epoch // of the copy's entry 5
		differs bool
	}{
		{"the same entry", 4, 2, false},
		{"another entry that is yet to come", 4, 3, true},
		{"the same entry, applied already", 5, 2, false},
		{"another entry, applied already", 5, 3, true},
	} {
		in := &incoming{ahead: []Page{{End: meta.Row{Area: 1}, At: replica.EntryID{Serial: 5, Epoch: 2}}}}
		for s := c.applied; s <= 5; s++ {
			in.reached(replica.EntryID{Serial: s, Epoch: c.epoch})
		}
		if got := fault.Is(in.differs, fault.WrongEpoch); got != c.differs {
			t.Errorf("%s: %v, want it found: %v", c.name, in.differs, c.differs)
		}
	}
}
