package lease

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
	"pgregory.net/rapid"
)

// pairOf returns a table with two sessions.
func pairOf(t *testing.T) (table *Table, a, b ID) {
	t.Helper()
	table = New(Config{Length: length, MaxSessions: 10, MaxLeases: 100, MaxOpen: 10, Shared: 50}, 1)
	for i, id := range []*ID{&a, &b} {
		var err error
		if *id, _, _, err = table.KeepAlive(0, uint64(i+1), length, 0); err != nil {
			t.Fatal(err)
		}
	}
	return table, a, b
}

var dir = []ids.Object{objectN(1)}

func TestGrantAlone_GrantsToOneSession(t *testing.T) {
	table, a, b := pairOf(t)
	granted := func(want bool, id ID, now int64) {
		t.Helper()
		if _, ok := table.GrantAlone(id, dir[0], now); ok != want {
			t.Fatalf("at %d session %d is alone: %v, want %v", now, id, ok, want)
		}
	}
	names := func(id ID) bool {
		_, ok := table.Grant(id, dir[0], pb.Grant_NAMES, 1)
		return ok
	}
	if !names(b) {
		t.Fatal("the names are refused where nobody is alone")
	}
	granted(false, a, 1) // b may know the names
	c, r := table.Begin(nil, []tree.Touch{{Object: dir[0], What: pb.Grant_NAMES}}, a)
	table.Answer(b, r[0].Serial, nil)
	granted(true, a, 2) // its own change is under way
	granted(false, b, 2)
	table.End(c)
	if names(b) {
		t.Error("another session gets the names while one is alone")
	}
	if c, _ := table.Share(dir, a, 3); c != nil {
		t.Error("who is alone waits for itself")
	}
	share, r := table.Share(dir, b, 3)
	if share.Ready() || len(r) != 1 || r[0].Session != a || r[0].Items[0].What != pb.Grant_ALONE {
		t.Fatalf("a reader goes on beside who is alone: %+v", r)
	}
	if own, _ := table.Share(dir, a, 3); !own.Ready() {
		t.Error("who is asked to tell what it made cannot")
	} else {
		table.End(own)
	}
	if ready := table.Answer(a, r[0].Serial, nil); len(ready) != 1 || !share.Ready() {
		t.Error("the answer lets nobody go on")
	}
	granted(false, a, 4) // the reader reads
	table.End(share)
	granted(false, a, 52) // they share it
	granted(true, a, 54)
}

func TestGrantAlone_EndsWithTheSession(t *testing.T) {
	table, a, b := pairOf(t)
	table.GrantAlone(a, dir[0], 1)
	if _, _, _, err := table.KeepAlive(b, 2, length, 90); err != nil {
		t.Fatal(err)
	}
	share, _ := table.Share(dir, b, 99)
	if _, ready := table.Expire(99); len(ready) != 0 || share.Ready() {
		t.Fatal("a reader goes on before the session of who is alone is over")
	}
	if _, ready := table.Expire(100); len(ready) != 1 || !share.Ready() {
		t.Error("the session's end lets nobody go on")
	}
}

func TestGrantAlone_SoonAgainAfterTheSliceMoved(t *testing.T) {
	table, a, b := pairOf(t)
	if _, ok := table.GrantAlone(a, dir[0], 1); !ok {
		t.Fatal("nobody is alone")
	}
	table.Void(dir[0].Slice(), 2)
	if _, _, _, err := table.KeepAlive(a, 1, length, 60); err != nil {
		t.Fatal(err)
	}
	share, r := table.Share(dir, a, 70)
	if share.Ready() || len(r) != 0 {
		t.Fatalf("what was granted before does not stand in the way until it runs out: %+v", r)
	}
	if _, ready := table.Expire(100); len(ready) != 1 || !share.Ready() {
		t.Fatal("it does not run out")
	}
	table.End(share)
	if _, ok := table.GrantAlone(a, dir[0], 101); !ok {
		t.Error("the directory counts as shared, though nobody else was there")
	}
	if _, ok := table.GrantAlone(b, dir[0], 102); ok {
		t.Error("and two are alone in it")
	}
}

// TestGrantAlone_ExcludesReaders plays random grants, reads and answers. No two
// sessions hold a directory exclusively, and none reads beside an exclusive
// holder.
func TestGrantAlone_ExcludesReaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := New(Config{Length: 1 << 40, MaxSessions: 10, MaxLeases: 100, MaxOpen: 10, Shared: 2}, 1)
		var ids [3]ID
		for i := range ids {
			ids[i], _, _, _ = table.KeepAlive(0, uint64(i+1), 1<<40, 0) // there is room
		}
		alone := map[ID]bool{}
		readers := map[*Change]ID{}
		asked := map[ID]uint64{}
		for now := int64(1); now < 60; now++ {
			id := ids[rapid.IntRange(0, 2).Draw(t, "session")]
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				if _, ok := table.GrantAlone(id, dir[0], now); ok {
					alone[id] = true
				}
			case 1:
				c, r := table.Share(dir, id, now)
				for _, x := range r {
					asked[x.Session] = x.Serial
				}
				if c != nil {
					readers[c] = id
				}
			case 2:
				if serial, ok := asked[id]; ok {
					delete(asked, id)
					delete(alone, id)
					table.Answer(id, serial, nil)
				}
			case 3:
				for c, by := range readers {
					if by == id && c.Ready() {
						table.End(c)
						delete(readers, c)
					}
				}
			}
			if len(alone) > 1 {
				t.Fatalf("alone are %v", alone)
			}
			for c, by := range readers {
				for other := range alone {
					if c.Ready() && by != other {
						t.Fatalf("session %d reads while %d is alone", by, other)
					}
				}
			}
		}
	})
}
