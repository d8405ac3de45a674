package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// TestGone_IsWhatTheActiveHas merges a part of a side log, and takes that out. Readers
// see then what the active does with it, and the rest is merged as ever.
func TestGone_IsWhatTheActiveHas(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"/removed", "/moved", "/written"} {
		d.make(alice, name, TypeRegular|0o644)
	}
	p := partedFrom(d)
	create := func(name string) uint64 {
		t.Helper()
		made := p.atSide(&pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Name: []byte(name), Mode: TypeRegular | 0o644}}}, nil)
		if made.Kind != 0 {
			t.Fatal(made)
		}
		if r := p.atSide(commitOp(made.Attr.Object, 0, len(name)), []byte(name)); r.Kind != 0 {
			t.Fatal(r)
		}
		return made.Attr.Object
	}
	for _, op := range []*pb.Operation{d.unlink("/removed", false), d.rename("/moved", "/to"), commitOp(uint64(d.id("/written")), 0, 4)} {
		if r := p.atSide(op, []byte("side")); r.Kind != 0 {
			t.Fatal(r)
		}
	}
	create("made")
	late := create("late")
	list, err := p.side.Merges()
	if err != nil {
		t.Fatal(err)
	}
	const serial = 77
	for _, o := range slices.Concat(list...) {
		if uint64(o) != late {
			p.mergeAs(o, serial)
		}
	}
	gone := func(applied ids.Serial) []SideChange {
		t.Helper()
		out, err := p.side.Gone(applied)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range gone(serial - 1) {
		if c.Merged != 0 {
			t.Errorf("%q goes before the copy shows the merge", c.Key)
		}
	}
	all := p.side.Changes()
	again := NewSide(1, p.side.base, nil, all)
	p.side.Forget(gone(serial))
	if size := NewSide(1, p.side.base, nil, p.side.Changes()).Size(); p.side.Size() != size {
		t.Errorf("a side counts %d bytes, and has %d", p.side.Size(), size)
	}
	if len(p.side.Changes()) >= len(all) || again.Size() <= p.side.Size() {
		t.Errorf("%d of %d changes stay", len(p.side.Changes()), len(all))
	}
	p.atActive(d.rename("/made", "/made2"), nil)
	p.atActive(d.rename("/to", "/to2"), nil)
	d.make(alice, "/removed", TypeRegular|0o644)
	p.atActive(commitOp(uint64(d.id("/written")), 4, 7), []byte(" active"))
	v := Shown(p.side, d.places[1].over)
	for name, want := range map[string]string{"made2": "made", "to2": "", "removed": "", "written": "side active", "late": "late"} {
		e, err := Lookup(v, rootID, []byte(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if a, err := GetAttr(v, e.Object, true, false); err != nil || string(a.GetContent().GetInline()) != want {
			t.Errorf("%s has %q, %v, want %q", name, a.GetContent().GetInline(), err, want)
		}
	}
	for _, name := range []string{"made", "to", "moved"} {
		if _, err := Lookup(v, rootID, []byte(name)); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	p.merge()
	if _, err := Lookup(d.places[1].over, rootID, []byte("late")); err != nil {
		t.Errorf("what was not merged yet is lost: %v", err)
	}
}

// TestForget_LeavesWhatWasChangedSince changes a file again while it goes out.
func TestForget_LeavesWhatWasChangedSince(t *testing.T) {
	d := newDesk(t)
	d.make(alice, "/f", TypeRegular|0o644)
	f := d.id("/f")
	p := partedFrom(d)
	write := func(text string) {
		t.Helper()
		if r := p.atSide(commitOp(uint64(f), 0, len(text)), []byte(text)); r.Kind != 0 {
			t.Fatal(r)
		}
	}
	write("one")
	p.mergeAs(f, 7)
	gone, err := p.side.Gone(7)
	if err != nil || len(gone) == 0 {
		t.Fatalf("%d changes go, %v", len(gone), err)
	}
	write("two")
	p.side.Forget(gone)
	if a, err := GetAttr(p.side, f, true, false); err != nil || string(a.GetContent().GetInline()) != "two" {
		t.Errorf("the file has %q, %v", a.GetContent().GetInline(), err)
	}
	p.merge()
	if a, err := GetAttr(d.places[1].over, f, true, false); err != nil || string(a.GetContent().GetInline()) != "two" {
		t.Errorf("the active has %q, %v", a.GetContent().GetInline(), err)
	}
}

// TestMerge_KeepsBesideTheNameHere merges what a side wrote into a file before somebody
// else moved that, or removed it: the side knows no name of it any more.
func TestMerge_KeepsBesideTheNameHere(t *testing.T) {
	for what, moves := range map[string]bool{"moved": true, "removed": false} {
		t.Run(what, func(t *testing.T) {
			d := newDesk(t)
			d.make(alice, "/tmp", TypeDir|0o755)
			d.make(alice, "/to", TypeDir|0o755)
			d.make(alice, "/tmp/f", TypeRegular|0o644)
			f := d.id("/tmp/f")
			p := partedFrom(d)
			if r := p.atSide(commitOp(uint64(f), 0, 4), []byte("part")); r.Kind != 0 {
				t.Fatal(r)
			}
			want := map[string]string{"tmp": "/", "to": "/"}
			if moves {
				p.atActive(commitOp(uint64(f), 0, 5), []byte("whole"))
				p.atActive(d.rename("/tmp/f", "/to/f"), nil)
				want["to/f"], want["to/f (conflict)"] = "whole", "part"
			} else {
				p.atActive(d.unlink("/tmp/f", false), nil)
				want[fmt.Sprintf("tmp/removed-1-%d (conflict)", f.Number())] = "part"
			}
			d.flush(d.places[1])
			p.side = NewSide(1, d.places[1].state.clone(), nil, p.side.Changes())
			p.merge()
			got := map[string]string{}
			for name, text := range p.names(d.places[1].over, rootID, "") {
				if i := strings.Index(name, " (conflict"); i >= 0 {
					name = name[:i] + " (conflict)"
				}
				got[name] = text
			}
			if !maps.Equal(got, want) {
				t.Errorf("the active has %q, want %q", got, want)
			}
		})
	}
}

// TestMerge_TakesTheNameOfALateCreate has a client's create time out at the active, which
// does it all the same, and the client go on at the side: it writes the file and moves it.
// Nothing has the first name afterwards.
func TestMerge_TakesTheNameOfALateCreate(t *testing.T) {
	for what, moves := range map[string]bool{"moved": true, "not moved": false} {
		t.Run(what, func(t *testing.T) {
			d := newDesk(t)
			p := partedFrom(d)
			o := uint64(SideObject(1, 5))
			create := func() *pb.Operation {
				return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Name: []byte("new"), Mode: TypeRegular | 0o644, Object: o}}}
			}
			if r := p.atSide(create(), nil); r.Kind != 0 {
				t.Fatal(r)
			}
			if r, _ := d.run(rootID, alice, 1, create(), nil); r.Kind != 0 {
				t.Fatal(r)
			}
			if r := p.atSide(commitOp(o, 0, 4), []byte("text")); r.Kind != 0 {
				t.Fatal(r)
			}
			want := map[string]string{"new": "text"}
			if moves {
				if r := p.atSide(&pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: uint64(rootID), Name: []byte("new"), NewDir: uint64(rootID), NewName: []byte("final")}}}, nil); r.Kind != 0 {
					t.Fatal(r)
				}
				want = map[string]string{"final": "text"}
			}
			p.merge()
			if got := p.names(d.places[1].over, rootID, ""); !maps.Equal(got, want) {
				t.Errorf("the active has %q, want %q", got, want)
			}
		})
	}
}
