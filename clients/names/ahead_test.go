package names

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

var below = ids.NewObject(1, 30)

func dirAttr(o ids.Object, change uint64) *pb.Attr {
	return &pb.Attr{Object: uint64(o), Mode: 0o040755, Parent: uint64(dir), Change: change, Nlink: 2, Uid: 7}
}

// own is a cache with a directory that is exclusively its own, and one file in it.
func own(t *testing.T) *Cache {
	t.Helper()
	c := New(&judge{}, Limits{})
	m := c.MarkDir(dir)
	c.Learn(&m, "n", append(grant(dir, pb.Grant_NAMES), grant(dir, pb.Grant_ALONE)...), func(l *Learner) {
		l.Attr(dirAttr(dir, 5), false)
		l.Attr(fileAttr(5), false)
		l.Entry(dir, "f", Entry{Object: file, Type: typeRegular})
		l.Complete(dir)
	})
	return c
}

func anybody(*pb.Attr) bool { return true }

func (c *Cache) mustMake(t *testing.T, in ids.Object, name string, o ids.Object) {
	t.Helper()
	a := dirAttr(o, 0)
	a.Parent, a.CtimeNs = uint64(in), 9
	if !c.MakeAhead(in, name, a) {
		t.Fatalf("%s cannot be made", name)
	}
}

func TestMakeAhead_ShowsAtOnce(t *testing.T) {
	c := own(t)
	c.mustMake(t, dir, "below", below)
	if e, _, ok := c.Lookup(dir, "below"); !ok || e.Object != below {
		t.Error("the name is not there")
	}
	if a, _, ok := c.Attr(dir); !ok || a.Nlink != 3 || a.MtimeNs != 9 || a.CtimeNs != 9 {
		t.Errorf("the directory is %v", a)
	}
	if list, ok := c.Listing(below); !ok || len(list) != 0 {
		t.Error("the new directory is not known to be empty")
	}
	if c.MakeAhead(dir, "below", dirAttr(below+1, 0)) {
		t.Error("the name is made twice")
	}
	if c.ahead[dir] != 1 || c.ahead[below] != 1 || c.ahead[file] != 0 {
		t.Error("what is ahead is not noted")
	}
}

// TestMakeAhead_ANewDirectoryGoesByItsParentsLeases takes a directory's leases away
// before the active has granted ones on the directory made in it, and afterwards.
func TestMakeAhead_ANewDirectoryGoesByItsParentsLeases(t *testing.T) {
	for _, x := range []struct {
		name    string
		what    pb.Grant_What
		granted bool // leases of its own
		known   bool // its names
		alone   bool
	}{
		{"shared before", pb.Grant_ALONE, false, true, false},
		{"revoked before", pb.Grant_NAMES, false, false, false},
		{"shared afterwards", pb.Grant_ALONE, true, true, true},
		{"revoked afterwards", pb.Grant_NAMES, true, true, true},
	} {
		c := own(t)
		c.mustMake(t, dir, "below", below)
		if x.granted {
			m := c.MarkAhead()
			c.Learn(&m, "n", append(grant(below, pb.Grant_NAMES), grant(below, pb.Grant_ALONE)...), func(*Learner) {})
			c.Settle(6, below, dir, below)
		}
		c.Revoke(dir, x.what)
		_, known := c.Listing(below)
		_, alone := c.Alone(below, "new")
		if known != x.known || alone != x.alone {
			t.Errorf("%s: its names are known: %v, want %v; it is alone: %v, want %v", x.name, known, x.known, alone, x.alone)
		}
	}
}

func TestSettle_EndsADirectoryWithoutLeases(t *testing.T) {
	c := own(t)
	c.mustMake(t, dir, "below", below)
	c.Settle(6, below, dir, below)
	if _, ok := c.Listing(below); ok {
		t.Error("the names of a directory are believed on which the active granted nothing")
	}
	if _, ok := c.Alone(below, "new"); ok {
		t.Error("it is taken to be exclusively this client's")
	}
}

func TestRemoveAhead_RefusesWhatIsNotSure(t *testing.T) {
	never := func(*pb.Attr) bool { return false }
	for _, x := range []struct {
		name string
		r    Removal
		turn func(*testing.T, *Cache)
		want bool
	}{
		{"a file", Removal{Name: "f", Object: file, May: anybody}, nil, true},
		{"another object", Removal{Name: "f", Object: below, May: anybody}, nil, false},
		{"a name that is not there", Removal{Name: "g", Object: file, May: anybody}, nil, false},
		{"one who may not", Removal{Name: "f", Object: file, May: never}, nil, false},
		{"a shared directory", Removal{Name: "f", Object: file, May: anybody}, func(_ *testing.T, c *Cache) { c.Revoke(dir, pb.Grant_ALONE) }, false},
		{"beside an operation at a node", Removal{Name: "f", Object: file, May: anybody}, func(_ *testing.T, c *Cache) { c.Begin(dir, 0, 0, "g") }, false},
		{"an empty directory", Removal{Name: "below", Object: below, May: anybody}, func(t *testing.T, c *Cache) { c.mustMake(t, dir, "below", below) }, true},
		{"one with a name", Removal{Name: "below", Object: below, May: anybody}, func(t *testing.T, c *Cache) {
			c.mustMake(t, dir, "below", below)
			c.mustMake(t, below, "x", below+1)
		}, false},
		{"a directory that others may fill", Removal{Name: "below", Object: below, May: anybody}, func(t *testing.T, c *Cache) {
			c.mustMake(t, dir, "below", below)
			c.Settle(6, below, dir, below)
		}, false},
	} {
		c := own(t)
		if x.turn != nil {
			x.turn(t, c)
		}
		x.r.Dir = dir
		got := c.RemoveAhead(x.r)
		if got != x.want {
			t.Errorf("%s: it is removed: %v", x.name, got)
		}
		if _, _, there := c.Attr(x.r.Object); got && there {
			t.Errorf("%s: its attributes are still known", x.name)
		}
	}
}

func TestMoveAhead_MovesNameAndAttributes(t *testing.T) {
	c := own(t)
	c.mustMake(t, dir, "below", below)
	may := func(o, target *pb.Attr) bool { return o != nil && target == nil }
	if !c.MoveAhead(Move{Dir: dir, To: below, Name: "f", NewName: "g", Object: file, May: may, At: 11}) {
		t.Fatal("it is not moved")
	}
	if e, _, ok := c.Lookup(dir, "f"); !ok || e.Object != 0 {
		t.Error("the old name is there")
	}
	if e, _, ok := c.Lookup(below, "g"); !ok || e.Object != file {
		t.Error("the new name is not there")
	}
	if a, _, ok := c.Attr(file); !ok || ids.Object(a.Parent) != below || a.CtimeNs != 11 {
		t.Errorf("the file is %v", a)
	}
	c.Revoke(below, pb.Grant_NAMES) // there are leases of its own by now, or not: the file goes by it
	if c.MoveAhead(Move{Dir: dir, To: dir, Name: "below", NewName: "other", Object: below, May: func(_, _ *pb.Attr) bool { return false }}) {
		t.Error("one who may not moved a name")
	}
}

func TestMoveAhead_LeavesDirectoriesWhereTheyAre(t *testing.T) {
	c := own(t)
	c.mustMake(t, dir, "below", below)
	c.mustMake(t, dir, "to", below+1)
	may := func(_, _ *pb.Attr) bool { return true }
	for _, x := range []struct {
		name string
		m    Move
		want bool
	}{
		{"to another directory", Move{Dir: dir, To: below + 1, Name: "below", NewName: "x", Object: below}, false},
		{"onto another one", Move{Dir: dir, To: dir, Name: "below", NewName: "to", Object: below, Target: below + 1}, false},
		{"a file onto one", Move{Dir: dir, To: dir, Name: "f", NewName: "to", Object: file, Target: below + 1}, false},
		{"to another name", Move{Dir: dir, To: dir, Name: "below", NewName: "x", Object: below}, true},
	} {
		x.m.May = may
		if got := c.MoveAhead(x.m); got != x.want {
			t.Errorf("a directory %s: moved: %v", x.name, got)
		}
	}
}

func TestSetAhead_OnlyOfWhatNobodyElseCanHaveSeen(t *testing.T) {
	set := func(a *pb.Attr) bool { a.Mode = 0o100600; return true }
	c := own(t)
	if _, ok := c.SetAhead(file, set); ok {
		t.Error("a file was changed that was there before")
	}
	made := fileAttr(0)
	made.Object = uint64(file + 1)
	if !c.Make(dir, "g", made) {
		t.Fatal("it cannot be made")
	}
	if parent, ok := c.SetAhead(file+1, set); !ok || parent != dir {
		t.Error("a file made here cannot be changed")
	}
	if a, _, _ := c.Attr(file + 1); a.Mode != 0o100600 || made.Mode != 0o100644 {
		t.Error("it is as before, or the attributes that were handed out changed")
	}
	c.Revoke(dir, pb.Grant_ALONE)
	if _, ok := c.SetAhead(file+1, set); ok {
		t.Error("it was changed when others could see it")
	}
}

// TestAhead_OldAnswersChangeNothing has answers come that do not know of an
// operation: asked for before it, and before the active had it.
func TestAhead_OldAnswersChangeNothing(t *testing.T) {
	for _, when := range []string{"before it", "while it was on its way", "asked for while, learned after it"} {
		c := own(t)
		m := c.MarkDir(dir)
		remove := func() {
			if !c.RemoveAhead(Removal{Dir: dir, Name: "f", Object: file, May: anybody}) {
				t.Fatal("it is not removed")
			}
		}
		old := func() {
			c.Learn(&m, "n", nil, func(l *Learner) {
				l.Attr(dirAttr(dir, 5), false)
				l.Attr(fileAttr(5), false)
				l.Entry(dir, "f", Entry{Object: file, Type: typeRegular})
				l.Complete(dir)
			})
		}
		remove()
		if when != "before it" {
			m = c.MarkDir(dir)
		}
		if when != "asked for while, learned after it" {
			old()
		}
		c.Settle(6, 0, dir, file)
		if when == "asked for while, learned after it" {
			old()
		}
		if e, _, ok := c.Lookup(dir, "f"); ok && e.Object != 0 {
			t.Errorf("an answer asked for %s brings the name back", when)
		}
		if _, _, ok := c.Attr(file); ok {
			t.Errorf("an answer asked for %s brings the file back", when)
		}
		if a, _, ok := c.Attr(dir); !ok || a.Change != 6 {
			t.Errorf("%s: the directory is at change %d", when, a.GetChange())
		}
	}
}
