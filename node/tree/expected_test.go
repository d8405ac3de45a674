package tree

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// expecting is a rename that says what its caller saw.
func expecting(op *pb.Operation, object, target ids.Object) *pb.Operation {
	op.GetRename().Object, op.GetRename().Target = uint64(object), uint64(target)
	return op
}

// TestRename_MovesWhatItsCallerSaw renames names that mean something else than
// the caller saw: nothing happens. What it saw, it moves.
func TestRename_MovesWhatItsCallerSaw(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"/a", "/b", "/c"} {
		d.make(super, name, TypeRegular|0o644)
	}
	link := &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(d.id("/a")), Dir: uint64(rootID), Name: []byte("same")}}}
	d.do(super, fault.None, link)
	a, b, c := d.id("/a"), d.id("/b"), d.id("/c")
	for _, x := range []struct {
		name           string
		want           fault.Kind
		op             *pb.Operation
		object, target ids.Object
	}{
		{"another source", fault.Stale, d.rename("/a", "/new"), b, 0},
		{"another source beside the right target", fault.Stale, d.rename("/a", "/b"), c, b},
		{"another target", fault.Stale, d.rename("/a", "/b"), a, c},
		{"a target that is not there", fault.Stale, d.rename("/a", "/new"), a, c},
		{"another source of an exchange", fault.Stale, d.rename("/a", "/b", "exchange"), c, b},
		{"another target of an exchange", fault.Stale, d.rename("/a", "/b", "exchange"), a, c},
		{"another target, which is the source by now", fault.Stale, d.rename("/a", "/same"), a, c},
		{"a source that is not there", fault.NotFound, d.rename("/new", "/a"), b, a},
		{"an exchange with nothing", fault.NotFound, d.rename("/a", "/new", "exchange"), a, b},
		{"a name that is taken", fault.Exists, d.rename("/a", "/b", "noreplace"), c, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			(&desk{d.world, t}).do(super, x.want, expecting(x.op, x.object, x.target))
			if d.id("/a") != a || d.id("/same") != a || d.id("/b") != b || d.id("/c") != c {
				t.Error("a refused rename changed a name")
			}
		})
	}
	if r := d.do(super, fault.None, expecting(d.rename("/a", "/same"), a, a)); !r.Existed {
		t.Errorf("two names of the object that was seen: %v", r)
	}
	d.do(super, fault.None, expecting(d.rename("/a", "/b", "exchange"), a, b))
	d.do(super, fault.None, expecting(d.rename("/a", "/new", "noreplace"), b, 0))
	d.do(super, fault.None, expecting(d.rename("/new", "/c"), b, c))
	if d.id("/b") != a || d.id("/c") != b {
		t.Errorf("/b is %v and /c is %v, want %v and %v", d.id("/b"), d.id("/c"), a, b)
	}
}

// TestRename_MovesWhatItsCallerSawAcrossSlices is the same where objects live in
// another slice than their names. The names change between the look without
// locks and the one under them. The coordinator gives up and holds nothing.
func TestRename_MovesWhatItsCallerSawAcrossSlices(t *testing.T) {
	for name, x := range map[string]struct{ source, exchange bool }{
		"the source": {source: true}, "the target": {}, "the source of an exchange": {true, true}, "the target of an exchange": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{newWorld(t, 1, 2), t}
			a, b, c := d.across(2, "a", TypeRegular), d.across(2, "b", TypeRegular), d.across(2, "c", TypeRegular)
			op := expecting(d.rename("/a", "/b"), a, b)
			op.GetRename().Exchange = x.exchange
			ctx := d.context(d.places[1], super)
			if o := Evaluate(d.places[1].over, d.world, ctx, op, nil); !o.Across {
				t.Fatalf("the rename does not need two slices: %+v", o)
			}
			k := NewCoordinator(ctx, op)
			for k.phase == exploring {
				d.answer(k)
			}
			other := "/a"
			if !x.source {
				other = "/b"
			}
			d.do(super, fault.None, d.rename("/c", other))
			r, ok := d.coordinate(k)
			if !ok || fault.Kind(r.Kind) != fault.Stale {
				t.Fatalf("got %v, want stale", r)
			}
			if d.id(other) != c {
				t.Errorf("%s is %v, want %v", other, d.id(other), c)
			}
			for _, p := range d.places {
				d.flush(p)
				if held, err := Prepared(p.state); err != nil || len(held) != 0 {
					t.Errorf("slice %d is still locked by %v, %v", p.id, held, err)
				}
			}
		})
	}
}

// answer does the actions of a coordinator once.
func (w *world) answer(k *Coordinator) {
	w.t.Helper()
	actions := k.Next()
	answers := make([]Answer, len(actions))
	for i, a := range actions {
		answers[i] = w.act(a)
	}
	k.Answer(answers)
}
