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

// TestBorn_IsLeasedBeforeAnybodyKnows leases a directory before it is made, to a
// session that is about to make it.
func TestBorn_IsLeasedBeforeAnybodyKnows(t *testing.T) {
	table, a, b := pairOf(t)
	own, _ := table.Share(dir, a, 1) // the operation that makes it names it
	names, alone, ok := table.Born(a, dir[0], 1)
	if !ok || names == 0 || alone <= names || !table.Alone(a, 1, dir[0], 1) {
		t.Fatalf("got serials %d and %d, %v", names, alone, ok)
	}
	table.End(own)
	if _, ok := table.Grant(b, dir[0], pb.Grant_NAMES, 1); ok || table.Alone(b, 2, dir[0], 1) || table.Alone(a, 2, dir[0], 1) || table.Alone(a, 1, dir[0], length) {
		t.Error("another session, another client or a session that has ended has the directory too")
	}
	share, r := table.Share(dir, b, 2)
	if share.Ready() || len(r) != 1 || r[0].Session != a || r[0].Serial <= alone {
		t.Fatalf("another session reads it beside who made it: %+v", r)
	}
	if _, _, ok := table.Born(a, dir[0], 2); ok {
		t.Error("a directory is born twice")
	}
	if ready := table.Unborn(a, dir[0]); len(ready) != 1 || !share.Ready() {
		t.Error("it is not made after all, and a reader still waits")
	}
	table.End(share)
	if _, leases := table.Len(); leases != 0 || len(table.objects) != 0 {
		t.Errorf("%d leases and %d objects are left", leases, len(table.objects))
	}
	if ready := table.Unborn(a, dir[0]); len(ready) != 0 {
		t.Error("what was not born ends")
	}
}

// TestBorn_RefusesWhatOthersHaveToDoWith gives no lease without a session or room,
// nor on an object that another session has a lease on or changes.
func TestBorn_RefusesWhatOthersHaveToDoWith(t *testing.T) {
	for name, prepare := range map[string]func(table *Table, a, b ID) ID{
		"no session":       func(_ *Table, _, _ ID) ID { return 0 },
		"another's lease":  func(table *Table, a, b ID) ID { table.Grant(b, dir[0], pb.Grant_NAMES, 1); return a },
		"another's change": func(table *Table, a, b ID) ID { table.Share(dir, b, 1); return a },
		"a full table":     func(table *Table, a, _ ID) ID { table.config.MaxLeases = 1; return a },
		"a sated user": func(table *Table, a, _ ID) ID {
			table.Charge(a, "u")
			table.Grant(a, objectN(9), pb.Grant_FILE, 1)
			table.config.MaxUserLeases = 1
			return a
		},
		"an ended session":   func(table *Table, a, _ ID) ID { table.Close(a, 1); return a },
		"a lapsed session":   func(table *Table, a, _ ID) ID { table.sessions[a].end = 1; return a },
		"its own lease":      func(table *Table, a, _ ID) ID { table.GrantAlone(a, dir[0], 1); return a },
		"changes of several": func(table *Table, a, b ID) ID { table.Share(dir, a, 1); table.Share(dir, b, 1); return a },
	} {
		table, a, b := pairOf(t)
		if _, _, ok := table.Born(prepare(table, a, b), dir[0], 1); ok {
			t.Errorf("%s: it is leased", name)
		}
	}
}

// TestBegin_TakesThousandsOfTouches begins and ends a change as large as a batch.
func TestBegin_TakesThousandsOfTouches(t *testing.T) {
	table, a, b := pairOf(t)
	table.config.MaxLeases = 1000
	var touches []tree.Touch
	for i := range 100 {
		o := objectN(10 + i)
		touches = append(touches, tree.Touch{Object: o, What: pb.Grant_FILE, Unlinked: true}, tree.Touch{Object: o, What: pb.Grant_FILE})
		table.Grant(b, o, pb.Grant_FILE, 1)
	}
	c, r := table.Begin(nil, touches, a)
	if len(r) != 1 || len(r[0].Items) != 100 || len(c.keys.list) != 100 || len(c.unlinked.list) != 100 {
		t.Fatalf("%d revocations, %d things, %d to unlink", len(r), len(c.keys.list), len(c.unlinked.list))
	}
	table.Answer(b, r[0].Serial, []ids.Object{objectN(20), objectN(30), objectN(9999)})
	if h := c.Holders(); !c.Ready() || len(h) != 2 || h[0] != (tree.Holder{Object: objectN(20), Client: 2}) {
		t.Errorf("the holders are %v; ready: %v", h, c.Ready())
	}
	table.End(c)
	if len(table.objects) != 0 || len(table.unlinking) != 0 {
		t.Errorf("%d objects and %d removals are left", len(table.objects), len(table.unlinking))
	}
}
