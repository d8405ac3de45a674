package meta

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
)

// shown is what a reading of a slice as of a time shows.
func shown(t *testing.T, db *DB, at uint64) (out []string) {
	t.Helper()
	err := db.SliceAt(1, at).Scan(nil, nil, func(key, value []byte) bool {
		out = append(out, fmt.Sprintf("%q=%q", key, value))
		got, ok, err := db.SliceAt(1, at).Get(key)
		if err != nil || !ok || !bytes.Equal(got, value) {
			t.Errorf("as of %d, key %q: a scan says %q, a look %q %v %v", at, key, value, got, ok, err)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// history counts the rows of a slice's history.
func history(t *testing.T, db *DB) (n int) {
	t.Helper()
	f := db.Freeze()
	defer f.Close()
	rows, err := f.Rows(1, Row{}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Area == areaHistory {
			n++
		}
	}
	return n
}

// TestForget_ChangesNoReadingFromTheHorizonOn compares readings as of every time before
// and after versions are forgotten, in parts as FindStale gives them. What is left is the
// same whatever the parts, and no more than the readings need. Readings as of kept times
// stay, too, until these are kept no longer.
func TestForget_ChangesNoReadingFromTheHorizonOn(t *testing.T) {
	removed := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		const last = 400
		var left [3]int
		for way, limit := range []int{1 << 20, 2 + rng.IntN(9), 1 << 20} {
			rng := rand.New(rand.NewPCG(seed, 7))
			db, err := Open("meta", Options{FS: vfs.NewMem()})
			if err != nil {
				t.Fatal(err)
			}
			for at := uint64(1); at <= last; at++ {
				key := fmt.Appendf(nil, "k\x00%d", rng.IntN(12))
				if rng.IntN(3) == 0 {
					key = []byte("often")
				}
				b := db.NewBatch()
				if rng.IntN(3) == 0 {
					err = b.Delete(1, key, at)
				} else {
					err = b.Put(1, key, fmt.Appendf(nil, "v%d", at), at)
				}
				if err == nil {
					err = b.Commit()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			horizon := uint64(50 + rng.IntN(last))
			var before [][]string
			var kept []string // readings as of the kept times
			retained := Retained{Horizon: horizon}
			for range rng.IntN(6) * int(seed%3) * (1 - way/2) {
				retained.Keeps = append(retained.Keeps, rng.Uint64N(last+20))
			}
			slices.Sort(retained.Keeps)
			for _, at := range retained.Keeps {
				kept = append(kept, fmt.Sprint(shown(t, db, at)))
			}
			for at := horizon; at <= last+1; at++ {
				before = append(before, shown(t, db, at))
			}
			rows := history(t, db)
			removed += forgetAll(t, db, retained, limit)
			for i := range before {
				if got := shown(t, db, horizon+uint64(i)); fmt.Sprint(got) != fmt.Sprint(before[i]) {
					t.Fatalf("seed %d, as of %d, horizon %d: got %v, want %v", seed, horizon+uint64(i), horizon, got, before[i])
				}
			}
			for i, at := range retained.Keeps {
				if got := fmt.Sprint(shown(t, db, at)); got != kept[i] {
					t.Fatalf("seed %d, as of the kept %d, horizon %d: got %v, want %v", seed, at, horizon, got, kept[i])
				}
			}
			removed += forgetAll(t, db, Retained{Horizon: horizon}, limit)
			if left[way] = history(t, db); left[way] >= rows {
				t.Errorf("seed %d: %d rows of history of %d are left", seed, left[way], rows)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if left[0] != left[1] || left[0] != left[2] {
			t.Errorf("seed %d: %d rows are left at once, %d in parts, %d where none was kept", seed, left[0], left[1], left[2])
		}
	}
	if removed < 1000 {
		t.Errorf("only %d rows were removed", removed)
	}
}

// forgetAll forgets part by part until nothing is left to forget.
func forgetAll(t *testing.T, db *DB, retained Retained, limit int) (removed int) {
	t.Helper()
	var from []byte
	for n := 0; ; n++ {
		part, err := db.FindStale(1, from, retained, limit)
		if err != nil || n > 10_000 {
			t.Fatalf("after %d parts: %v", n, err)
		}
		if part.Rows > 2*limit {
			t.Errorf("a part of %d rows, limit %d", part.Rows, limit)
		}
		if part.Rows > 0 {
			before := history(t, db)
			b := db.NewBatch()
			if err := b.Forget(1, part.From, part.To, Retained{part.Horizon, retained.Keeps}); err != nil {
				t.Fatal(err)
			}
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
			if got := before - history(t, db); got != part.Rows && (got != part.Rows+1 || part.Horizon == retained.Horizon) {
				t.Errorf("%d rows went, %d were found", got, part.Rows)
			}
		}
		if removed += part.Rows; part.Next == nil {
			return removed
		}
		from = part.Next
	}
}

func TestForget_RefusesABatchWithChanges(t *testing.T) {
	db, err := Open("meta", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := db.NewBatch()
	defer b.Abandon()
	if err := b.Set(1, []byte("p"), nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Forget(1, []byte("a"), []byte("b"), Retained{Horizon: 5}); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
}
