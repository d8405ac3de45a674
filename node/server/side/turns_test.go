package side

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// does has a node change a key, over what it knows, and brings that to the others.
func (w *world) does(t *testing.T, l *Log, c tree.SideChange) part {
	t.Helper()
	s, k, err := l.of(theSlice)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	did := part{s.serial, s.next(0), []tree.SideChange{c}}
	did.changes[0].Serial = did.serial
	s.serial = did.serial
	err = k.put(logID{theSlice, l.o.Self}, did.changes)
	l.side(s, logID{theSlice, l.o.Self}).Apply(did.changes)
	s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	l.copyTo(t.Context(), theSlice, s, did)
	return did
}

// TestTurns_TheLastChangeShows has two members change one key in turn. Each of them, and
// a third one, shows the last change, also after a start.
func TestTurns_TheLastChangeShows(t *testing.T) {
	w := &world{logs: map[string]*Log{}}
	b, c, d := w.open(t, "b", 1), w.open(t, "c", 1), w.open(t, "d", 1)
	all := []*Log{b, c, d}
	show := func(want string) {
		t.Helper()
		for _, l := range all {
			wants(t, shows(t, l, "a"), want)
		}
	}
	w.does(t, b, change("a", "1"))
	show("1")
	w.does(t, c, change("a", "2"))
	show("2")
	w.does(t, b, change("a", "3"))
	show("3")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(c.o)
	if err != nil {
		t.Fatal(err)
	}
	all[1], w.logs["c"] = again, again
	show("3")
	w.does(t, again, change("a", "4"))
	show("4")
}

// TestTurns_AllShowTheSameOfWhatTwoDidAtOnce has two members change one key without
// hearing of each other.
func TestTurns_AllShowTheSameOfWhatTwoDidAtOnce(t *testing.T) {
	w := &world{logs: map[string]*Log{}}
	b, c, d := w.open(t, "b", 1), w.open(t, "c", 1), w.open(t, "d", 1)
	w.fails = func(string, *pb.SideCopyRequest) error { return fault.E(fault.Again, "test", "", "the line is cut") }
	w.does(t, b, change("a", "b's"))
	w.does(t, c, change("a", "c's"))
	wants(t, shows(t, b, "a"), "b's")
	wants(t, shows(t, c, "a"), "c's")
	w.fails = nil
	w.does(t, b, change("other", "1")) // a member that lacks some gets everything
	w.does(t, c, change("other", "2"))
	got := shows(t, d, "a")
	wants(t, shows(t, b, "a"), got...)
	wants(t, shows(t, c, "a"), got...)
}

// TestOwnerOf_IsWhoChangedTheFileLast goes on with a file at the member that began it.
func TestOwnerOf_IsWhoChangedTheFileLast(t *testing.T) {
	w := &world{logs: map[string]*Log{}}
	b, c := w.open(t, "b", 1), w.open(t, "c", 1)
	file := ids.NewObject(theSlice, 5)
	record := tree.SideChange{Key: tree.RecordKey(file), Value: tree.AppendInode(nil, &tree.Inode{Object: file, Mode: tree.TypeRegular | 0o644, Nlink: 1})}
	commit := &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(file)}}}
	for _, l := range []*Log{b, c} {
		if by, is := l.ownerOf(theSlice, commit); is {
			t.Errorf("%s has a file that nobody wrote", by)
		}
	}
	for _, does := range []*Log{c, b} {
		w.does(t, does, record)
		for _, l := range []*Log{b, c} {
			if by, is := l.ownerOf(theSlice, commit); !is || by != does.o.Self {
				t.Errorf("at %s the file is %s's, %v, want %s", l.o.Self, by, is, does.o.Self)
			}
		}
	}
}
