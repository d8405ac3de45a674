package tree

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
)

// TestAddRefs_TellsWhatEachChunkIsKeptFor has a chunk in each state, and reads the rows in
// pages of every length.
func TestAddRefs_TellsWhatEachChunkIsKeptFor(t *testing.T) {
	m := newMemory()
	const horizon = hlc.Time(100)
	sizes := map[chunk.Address]int{}
	for name, x := range map[string]struct {
		refs  Refs
		bytes int
	}{
		"once":        {Refs{Count: 1, Time: 50}, 1},
		"three times": {Refs{Count: 3, Time: 150}, 10},
		"older":       {Refs{Time: 101}, 100},
		"waiting":     {Refs{Time: 100, Since: 90}, 1000},
		"in between":  {Refs{Time: 90, Since: 81}, 10_000},
		"a snapshot":  {Refs{Time: 90, Since: 70}, 100_000},
		"not here":    {Refs{Count: 2, Time: 50}, 0},
	} {
		a := chunk.Sum([]byte(name))
		if x.bytes > 0 {
			sizes[a] = x.bytes
		}
		if err := m.apply([]Mutation{{Key: refsKey(&a), Value: appendRefs(nil, x.refs)}}, 1); err != nil {
			t.Fatal(err)
		}
	}
	want := Usage{Named: Amount{2, 11}, Repeated: 20, Older: Amount{2, 100_100}, Snapshots: Amount{1, 100_000}, Waiting: Amount{2, 11_000}, Missing: 1}
	for limit := 1; limit <= 8; limit++ {
		var got Usage
		var behind chunk.Address
		for calls := 1; ; calls++ {
			var page Usage
			last, err := page.AddRefs(m, behind, horizon, []hlc.Time{80}, limit, func(a chunk.Address) (int, bool) { n, ok := sizes[a]; return n, ok })
			if err != nil || calls > 8 {
				t.Fatalf("limit %d, call %d: %v", limit, calls, err)
			}
			if n := page.Named.Count + page.Older.Count + page.Waiting.Count + page.Missing; int(n) > limit {
				t.Fatalf("limit %d: a page has %d rows", limit, n)
			}
			got.Add(&page)
			if behind = last; last.IsZero() {
				break
			}
		}
		if got != want {
			t.Errorf("limit %d: got %+v, want %+v", limit, got, want)
		}
	}
}

func TestAddDead_TellsWhichWalksWait(t *testing.T) {
	m := newMemory()
	for i := range 5 {
		key := append(pairKey(keyDead, uint64(98+i), 7), 0, byte(i))
		if err := m.apply([]Mutation{{Key: key, Value: append(make([]byte, 32), 1)}}, 1); err != nil {
			t.Fatal(err)
		}
	}
	for limit := 1; limit <= 6; limit++ {
		var got Usage
		var behind []byte
		for calls := 1; ; calls++ {
			var err error
			if behind, err = got.AddDead(m, behind, 100, nil, limit); err != nil || calls > 6 {
				t.Fatalf("limit %d, call %d: %v", limit, calls, err)
			}
			if behind == nil {
				break
			}
		}
		if want := (Usage{Unwalked: 5, WaitingWalks: 3}); got != want {
			t.Errorf("limit %d: got %+v, want %+v", limit, got, want)
		}
	}
}

func TestAddOld_TellsDeletedFilesFromOlderVersions(t *testing.T) {
	o := ids.NewObject(1, 20)
	file := func(version, stored uint64) []byte {
		return AppendInode(nil, &Inode{Mode: TypeRegular | 0o600, Version: version, Stored: stored, Size: stored})
	}
	dir := AppendInode(nil, &Inode{Mode: TypeDir | 0o700})
	for _, x := range []struct {
		name string
		old  Old
		want Usage
	}{
		{"a deleted file", Old{Key: RecordKey(o), Value: file(1, 30), Until: 101}, Usage{Deleted: Amount{1, 30}}},
		{"one that retention lets go", Old{Key: RecordKey(o), Value: file(1, 30), Until: 100}, Usage{}},
		{"other content", Old{Key: RecordKey(o), Value: file(1, 30), By: file(2, 40), Until: 101}, Usage{Replaced: Amount{1, 30}}},
		{"other attributes alone", Old{Key: RecordKey(o), Value: file(1, 30), By: file(1, 30), Until: 101}, Usage{}},
		{"the first content of a new file", Old{Key: RecordKey(o), Value: file(1, 0), By: file(2, 40), Until: 101}, Usage{}},
		{"a deleted directory", Old{Key: RecordKey(o), Value: dir, Until: 101}, Usage{}},
		{"the note of a removal", Old{Key: RecordKey(o), Gone: true, Until: 101}, Usage{}},
		{"a name", Old{Key: nameKey(keyEntry, o, []byte("n")), Value: []byte("12345678"), Until: 101}, Usage{}},
	} {
		x.want.OldRows = Amount{1, uint64(len(x.old.Key) + len(x.old.Value))}
		var got Usage
		if err := got.AddOld(&x.old, 100); err != nil || got != x.want {
			t.Errorf("%s: got %+v, %v, want %+v", x.name, got, err, x.want)
		}
	}
	var u Usage
	if err := u.AddOld(&Old{Key: RecordKey(o), Value: []byte{99}, Until: 101}, 100); err == nil {
		t.Error("a damaged record has no error")
	}
}
