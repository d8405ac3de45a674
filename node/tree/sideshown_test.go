package tree

import (
	"maps"
	"slices"
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// replacer writes a file anew, and moves it over the former one.
type replacer struct {
	*parted
	t *testing.T
}

func (r replacer) make(do func(*pb.Operation, []byte) *pb.Result, text string) ids.Object {
	r.t.Helper()
	made := do(&pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Name: []byte("new"), Mode: TypeRegular | 0o644}}}, nil)
	if made.Kind != 0 {
		r.t.Fatal(made)
	}
	if r2 := do(commitOp(made.Attr.Object, 0, len(text)), []byte(text)); r2.Kind != 0 {
		r.t.Fatal(r2)
	}
	return ids.Object(made.Attr.Object)
}

func (r replacer) move(do func(*pb.Operation, []byte) *pb.Result) {
	r.t.Helper()
	move := &pb.Rename{Dir: uint64(rootID), Name: []byte("new"), NewDir: uint64(rootID), NewName: []byte("f")}
	if moved := do(&pb.Operation{Op: &pb.Operation_Rename{Rename: move}}, nil); moved.Kind != 0 {
		r.t.Fatal(moved)
	}
}

// merge merges everything. The side hears of that, or not yet.
func (r replacer) merge(heard bool) {
	r.t.Helper()
	list, err := r.side.Merges()
	if err != nil || len(list) == 0 {
		r.t.Fatalf("%v, %v", list, err)
	}
	for _, o := range slices.Concat(list...) {
		if heard {
			r.mergeAs(o, 9)
		} else if _, answer := r.send(o, true); answer.Kind != 0 {
			r.t.Fatal(answer)
		}
	}
}

// shows looks at what f and new are for readers at the side; 0: nothing.
func (r replacer) shows(when string, f, spare ids.Object) {
	r.t.Helper()
	v := Shown(r.side, r.places[1].over)
	for name, want := range map[string]ids.Object{"f": f, "new": spare} {
		e, err := Lookup(v, rootID, []byte(name))
		if err != nil {
			e.Object = 0
		}
		if e.Object != want {
			r.t.Errorf("%s: %s is %v, want %v", when, name, e.Object, want)
		}
		if want == 0 {
			continue
		}
		if a, err := GetAttr(v, e.Object, true, false); err != nil || len(a.Content.GetInline()) == 0 {
			r.t.Errorf("%s: %s has %v, %v", when, name, a, err)
		}
	}
}

// TestShown_KeepsAMoveThatIsNotMerged has a side write a file, which is merged, and move it
// over another one then. Before that is merged too, readers see the move, and behind
// it what the active does with the names.
func TestShown_KeepsAMoveThatIsNotMerged(t *testing.T) {
	for _, heard := range []bool{true, false} {
		d := newDesk(t)
		d.make(alice, "/f", TypeRegular|0o644)
		r := replacer{partedFrom(d), t}
		side := r.make(r.atSide, "of the side")
		r.merge(heard)
		r.move(r.atSide)
		r.shows("moved", side, 0)
		r.merge(true)
		r.shows("merged", side, 0)
		next := r.make(r.atActive, "of the active")
		r.shows("the active makes one", side, next)
		r.move(r.atActive)
		r.shows("the active moves it", next, 0)
	}
}

// TestMerges_AReplacedNameIsNeverMissing merges in either order, where the former file
// goes, and where it has another name.
func TestMerges_AReplacedNameIsNeverMissing(t *testing.T) {
	for variant := range 4 {
		linked, backwards := variant&1 != 0, variant&2 != 0
		d := newDesk(t)
		d.make(alice, "/f", TypeRegular|0o644)
		former, want := d.id("/f"), map[string]string{"f": "of the side"}
		if linked {
			link := &pb.Link{Object: uint64(former), Dir: uint64(rootID), Name: []byte("link")}
			if r, _ := d.run(rootID, super, 0, &pb.Operation{Op: &pb.Operation_Link{Link: link}}, nil); r.Kind != 0 {
				t.Fatal(r)
			}
			want["link"] = ""
		}
		r := replacer{partedFrom(d), t}
		r.make(r.atSide, "of the side")
		r.move(r.atSide)
		r.mergeInOrder(backwards)
		if names := r.here(); !maps.Equal(names, want) {
			t.Errorf("there are %v, want %v", names, want)
		}
		if n, err := readInode(d.places[1].state, former); err != nil || (n != nil) != linked {
			t.Errorf("the former file is %v, %v", n, err)
		}
	}
}

// mergeInOrder merges everything, and looks for the file meanwhile.
func (r replacer) mergeInOrder(backwards bool) {
	r.t.Helper()
	for round := 0; ; round++ {
		waves, err := r.side.Merges()
		if err != nil || round == 3 {
			r.t.Fatalf("after %d rounds there is %v, %v", round, waves, err)
		}
		list := slices.Concat(waves...)
		if len(list) == 0 {
			return
		}
		if backwards {
			slices.Reverse(list)
		}
		for _, o := range list {
			r.mergeAs(o, 9)
			if _, is := r.names(r.places[1].over, rootID, "")["f"]; !is {
				r.t.Errorf("once %v is merged the name is missing", o)
			}
		}
	}
}
