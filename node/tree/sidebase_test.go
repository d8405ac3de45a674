package tree

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// behind has an operation refused where a side log's version is not there.
func behind(op *pb.Operation, side uint64) *pb.Operation {
	op.SideBase = side
	return op
}

// TestEvaluate_GoesOnOnlyBehindWhatASideHas makes a file at the active, begins it at a
// side, and sends the active the rest: with a hole in front it must not be.
func TestEvaluate_GoesOnOnlyBehindWhatASideHas(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/f", TypeRegular|0o644)
	f := uint64(d.id("/f"))
	p := partedFrom(d)
	begun := p.atSide(commitOp(f, 0, 5), []byte("begun"))
	if begun.Kind != 0 || !IsOfSide(begun.Attr) {
		t.Fatal(begun)
	}
	side := begun.Attr.Version
	was := d.attr("/f")
	for what, op := range map[string]*pb.Operation{
		"the rest": commitOp(f, 5, 5), "a name": d.rename("/f", "/g"),
		"a link": {Op: &pb.Operation_Link{Link: &pb.Link{Object: f, Dir: uint64(rootID), Name: []byte("h")}}},
	} {
		if got := fault.Kind(p.atActive(behind(op, side), []byte(" rest")).Kind); got != fault.Again {
			t.Errorf("%s: got %v, want Again", what, got)
		}
	}
	if is := d.attr("/f"); is.Version != was.Version || is.Size != 0 || is.Nlink != 1 {
		t.Errorf("what was refused made %v of %v", is, was)
	}
	p.merge()
	if is := d.attr("/f"); is.SideVersion != side {
		t.Errorf("the active has side version %d, want %d", is.SideVersion, side)
	}
	if got := p.atActive(behind(commitOp(f, 5, 5), side), []byte(" rest")); got.Kind != 0 || string(got.Attr.Content.GetInline()) != "begun rest" {
		t.Errorf("once it is merged: %v", got)
	}
	if got := p.atSide(behind(commitOp(f, 5, 1), side), []byte("!")); got.Kind != 0 {
		t.Errorf("at the side, once it is merged: %v", got)
	}
	if got := fault.Kind(p.atActive(behind(commitOp(f, 5, 5), side+1), []byte(" rest")).Kind); got != fault.Again {
		t.Errorf("behind a newer version of the side: got %v, want Again", got)
	}
}

// TestEvaluate_RefusesANameThatItsCallerTook moves a file at a side, or at the active, and
// has the other one, which lacks that, do something to the old name.
func TestEvaluate_RefusesANameThatItsCallerTook(t *testing.T) {
	for _, atSide := range []bool{true, false} {
		d := newDesk(t)
		d.make(alice, "/f", TypeRegular|0o644)
		d.make(alice, "/other", TypeRegular|0o644)
		f := uint64(d.id("/f"))
		p := partedFrom(d)
		moves, lacks := p.atSide, p.atActive
		if !atSide {
			moves, lacks = p.atActive, p.atSide
		}
		if r := moves(d.rename("/f", "/g"), nil); r.Kind != 0 {
			t.Fatal(r)
		}
		for what, op := range map[string]*pb.Operation{
			"a create":      {NameWas: []uint64{5, f}, Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Name: []byte("f"), Mode: TypeRegular | 0o644}}},
			"a link":        {NameWas: []uint64{5, f}, Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(d.id("/other")), Dir: uint64(rootID), Name: []byte("f")}}},
			"an unlink":     {NameWas: []uint64{5, f}, Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(rootID), Name: []byte("f"), Object: f}}},
			"a rename":      {NewNameWas: []uint64{5, f}, Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: uint64(rootID), Name: []byte("other"), NewDir: uint64(rootID), NewName: []byte("f")}}},
			"the same move": {NameWas: []uint64{5, f}, Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: uint64(rootID), Name: []byte("f"), NewDir: uint64(rootID), NewName: []byte("h")}}},
		} {
			if got := fault.Kind(lacks(op, nil).Kind); got != fault.Again {
				t.Errorf("moved at the side %v: %s: got %v, want Again", atSide, what, got)
			}
		}
		for what, op := range map[string]*pb.Operation{
			"that means something else": {NameWas: []uint64{5, f}, Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Name: []byte("other2"), Mode: TypeRegular | 0o644}}},
			"that is free":              {NewNameWas: []uint64{5, f}, Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: uint64(rootID), Name: []byte("other"), NewDir: uint64(rootID), NewName: []byte("h")}}},
		} {
			if r := lacks(op, nil); r.Kind != 0 {
				t.Errorf("moved at the side %v: a name %s: got %v", atSide, what, fault.Kind(r.Kind))
			}
		}
		if atSide {
			p.merge()
			if r := p.atActive(&pb.Operation{NameWas: []uint64{5, f}, Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Name: []byte("f"), Mode: TypeRegular | 0o644}}}, nil); r.Kind != 0 {
				t.Errorf("once it is merged: got %v", fault.Kind(r.Kind))
			}
		}
	}
}

// TestMerge_TakesAnOldNameThoughTheNewOneIsThere has the active do late, as a link, what
// the side did as a move.
func TestMerge_TakesAnOldNameThoughTheNewOneIsThere(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/f", TypeRegular|0o644)
	f := uint64(d.id("/f"))
	p := partedFrom(d)
	if r := p.atSide(d.rename("/f", "/g"), nil); r.Kind != 0 {
		t.Fatal(r)
	}
	if r := p.atActive(&pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: f, Dir: uint64(rootID), Name: []byte("g")}}}, nil); r.Kind != 0 {
		t.Fatal(r)
	}
	p.merge()
	if got := p.here(); len(got) != 1 || d.attr("/g").Nlink != 1 {
		t.Errorf("after the merge there are %v, want the file as g alone", got)
	}
}

// TestEvaluate_MovesAtASideWhatTheActiveMoved asks a side for a move that its copy has.
func TestEvaluate_MovesAtASideWhatTheActiveMoved(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/f", TypeRegular|0o644)
	d.make(alice, "/other", TypeRegular|0o644)
	again, other := d.rename("/f", "/g"), d.rename("/f", "/g")
	again.GetRename().Object, other.GetRename().Object = uint64(d.id("/f")), uint64(d.id("/other"))
	if r, _ := d.run(rootID, super, 0, d.rename("/f", "/g"), nil); r.Kind != 0 {
		t.Fatal(r)
	}
	p := partedFrom(d)
	if r := p.atSide(again, nil); r.Kind != 0 || r.Existed || r.GetAttr().GetObject() != again.GetRename().Object {
		t.Errorf("the same move got %v", r)
	}
	if got := fault.Kind(p.atSide(other, nil).Kind); got != fault.NotFound {
		t.Errorf("the move of another file got %v, want not found", got)
	}
	if got := fault.Kind(p.atActive(again, nil).Kind); got != fault.NotFound {
		t.Errorf("at the active the move got %v, want not found", got)
	}
}

// TestMerge_TellsOfWhatChangesNothing has both sides write the same, and two that differ
// of which the side's is older: also then the active has what the side had.
func TestMerge_TellsOfWhatChangesNothing(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/same", TypeRegular|0o644)
	d.make(alice, "/other", TypeRegular|0o644)
	p := partedFrom(d)
	versions := map[string]uint64{}
	for _, name := range []string{"/same", "/other"} {
		f := uint64(d.id(name))
		versions[name] = p.atSide(commitOp(f, 0, 4), []byte("text")).Attr.Version
		text := map[string]string{"/same": "text", "/other": "newer"}[name]
		if r := p.atActive(commitOp(f, 0, len(text)), []byte(text)); r.Kind != 0 {
			t.Fatal(r)
		}
	}
	was := d.attr("/same").Version
	p.merge()
	if is := d.attr("/same").Version; is != was {
		t.Errorf("a merge that changes nothing made version %d of %d", is, was)
	}
	for name, side := range versions {
		if is := d.attr(name); is.SideVersion != side {
			t.Errorf("%s has side version %d, want %d", name, is.SideVersion, side)
		}
		if r := p.atActive(behind(commitOp(uint64(d.id(name)), 0, 1), side), []byte("x")); r.Kind != 0 {
			t.Errorf("%s cannot be gone on with: %v", name, r)
		}
	}
}

// TestCommit_NobodyButAMergeTellsOfSides sends a client's commit with what only merges say.
func TestCommit_NobodyButAMergeTellsOfSides(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/f", TypeRegular|0o644)
	f := d.id("/f")
	op := &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(f), SideVersion: 7}}}
	if r, _ := d.run(rootID, alice, 0, op, nil); fault.Kind(r.Kind) != fault.Permission || d.attr("/f").SideVersion != 0 {
		t.Errorf("got %v", r)
	}
}

// TestShown_LetsTheActiveGoOn keeps a copy of a side log that nobody told of the merge,
// while the active goes on with what was merged.
func TestShown_LetsTheActiveGoOn(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/f", TypeRegular|0o644)
	f := uint64(d.id("/f"))
	p := partedFrom(d)
	if r := p.atSide(commitOp(f, 0, 5), []byte("begun")); r.Kind != 0 {
		t.Fatal(r)
	}
	side := p.atSide(&pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Name: []byte("made"), Mode: TypeRegular | 0o644}}}, nil).Attr
	if r := p.atSide(commitOp(side.Object, 0, 1), []byte("m")); r.Kind != 0 {
		t.Fatal(r)
	}
	told := p.side
	copied := NewSide(1, told.base, nil, told.Changes())
	shows := func(name, want string) {
		t.Helper()
		v := Shown(copied, d.places[1].over)
		e, err := Lookup(v, rootID, []byte(name))
		if want == "" {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s is there: %v, %v", name, e, err)
			}
			return
		}
		a, err := GetAttr(v, e.Object, true, false)
		if err != nil || string(a.GetContent().GetInline()) != want {
			t.Errorf("%s has %q, %v, want %q", name, a.GetContent().GetInline(), err, want)
		}
	}
	shows("f", "begun")
	shows("made", "m")
	p.merge()
	if r := p.atActive(commitOp(f, 5, 5), []byte(" rest")); r.Kind != 0 {
		t.Fatal(r)
	}
	now := d.attr("/f").Version
	p.atActive(d.rename("/f", "/g"), nil)
	p.atActive(d.unlink("/made", false), nil)
	shows("g", "begun rest")
	shows("f", "")
	shows("made", "")
	p.side = copied
	late := commitOp(f, 10, 1)
	late.Base = now
	if got := fault.Kind(p.atSide(late, []byte("!")).Kind); got != fault.Again {
		t.Errorf("behind what the active did since: got %v, want Again", got)
	}
	p.side = told
	if r := p.atSide(commitOp(f, 0, 1), []byte("B")); r.Kind != 0 {
		t.Fatal(r)
	}
	copied = NewSide(1, told.base, nil, told.Changes())
	v := Shown(copied, d.places[1].over)
	if a, err := GetAttr(v, d.id("/g"), true, false); err != nil || !IsOfSide(a) {
		t.Errorf("what is not merged yet does not show: %v, %v", a, err)
	}
	p = partedFrom(d)
	mode := uint32(0o600)
	if r := p.atSide(&pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: f, Mode: &mode}}}, nil); r.Kind != 0 {
		t.Fatal(r)
	}
	if a, err := GetAttr(Shown(p.side, d.places[1].over), d.id("/g"), false, false); err != nil || a.Mode&0o777 != mode {
		t.Errorf("another mode does not show: %v, %v", a, err)
	}
}
