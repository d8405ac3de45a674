package reading

import (
	"fmt"
	"reflect"
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// under is a tree, of which a walk to top brings the names along.
type under struct {
	*bench
	a, near ids.Object
	names   map[uint64]string
}

// newUnder makes it: top has the directories a and shut, which bob may not
// enter, near of another slice, and f. Bob may search pass, but not read it.
func newUnder(t *testing.T) *under {
	t.Helper()
	u := &under{bench: newBench(t), names: map[uint64]string{uint64(ids.RootObject): "root"}}
	dir := func(in ids.Object, name string, perm uint32) ids.Object {
		o := u.mkdir(in, name, perm, ann)
		u.names[uint64(o)] = name
		return o
	}
	top := dir(ids.RootObject, "top", 0o755)
	u.a = dir(top, "a", 0o755)
	deep, shut := dir(u.a, "deep", 0o755), dir(top, "shut", 0o700)
	pass := dir(u.a, "pass", 0o711)
	u.near = u.apart(top, "near", nearSlice, tree.TypeDir|0o755, ann)
	for name, in := range map[string]ids.Object{"f": top, "g": u.a, "h": deep, "i": shut, "k": pass, "j": u.near} {
		u.file(in, name, 0o644, ann, "")
	}
	return u
}

// ask walks to a directory, and tells the levels that come along with so many
// bytes, and the leases.
func (u *under) ask(who Asker, to string, bytes uint32) (levels, grants []string) {
	u.Helper()
	out, err := u.Resolve(u.Context(), who, &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path(to), BelowBytes: bytes})
	if err != nil {
		u.Fatal(err)
	}
	for _, l := range out.Below {
		text := u.names[l.Dir] + ":"
		for _, e := range l.Entries {
			text += " " + string(e.Name)
		}
		if !l.Whole {
			text += " ..."
		}
		levels = append(levels, text)
	}
	return levels, granted(out.Grants, u.names)
}

// plenty is room for all names below top.
const plenty = 1 << 20

func TestBelow_BringsNamesUnderADirectory(t *testing.T) {
	u := newUnder(t)
	levels, grants := u.ask(u.within(node()), "top", plenty)
	if want := []string{"top: a shut f near", "a: deep pass g", "shut: i", "deep: h", "pass: k"}; !reflect.DeepEqual(levels, want) {
		t.Errorf("got %q, want %q", levels, want)
	}
	if want := []string{"NAMES root", "NAMES top", "NAMES a", "NAMES shut", "NAMES deep", "NAMES pass"}; !reflect.DeepEqual(grants, want) {
		t.Errorf("got %q, want %q", grants, want)
	}
}

func TestBelow_LeavesOutWhatMayNotBeRead(t *testing.T) {
	u := newUnder(t)
	levels, _ := u.ask(u.within(asBob()), "top", plenty)
	if want := []string{"top: a shut f near", "a: deep pass g", "deep: h"}; !reflect.DeepEqual(levels, want) {
		t.Errorf("got %q, want %q", levels, want)
	}
}

func TestBelow_LeavesOutWhatIsAboutToChange(t *testing.T) {
	u := newUnder(t)
	i := u.move(u.a, "g", u.near)
	levels, _ := u.ask(u.within(node()), "top", plenty)
	if want := []string{"top: a shut f near", "shut: i"}; !reflect.DeepEqual(levels, want) {
		t.Errorf("meanwhile: got %q, want %q", levels, want)
	}
	i.finish()
	levels, _ = u.ask(u.within(node()), "top", plenty)
	if want := []string{"top: a shut f near", "a: deep pass", "shut: i", "deep: h", "pass: k"}; !reflect.DeepEqual(levels, want) {
		t.Errorf("afterwards: got %q, want %q", levels, want)
	}
}

func TestBelow_BringsNothingUnasked(t *testing.T) {
	u := newUnder(t)
	u.mkdir(ids.RootObject, "empty", 0o755, ann)
	for what, c := range map[string]struct {
		who   Asker
		to    string
		bytes uint32
	}{
		"without a session":         {node(), "top", plenty},
		"in no bytes":               {u.within(node()), "top", 0},
		"in no bytes, of no names":  {u.within(node()), "empty", 0},
		"for what is no directory":  {u.within(node()), "top/f", plenty},
		"for what is not there":     {u.within(node()), "top/nothing", plenty},
		"for one that is not shown": {u.within(asBob()), "top/shut", plenty},
	} {
		if levels, _ := u.ask(c.who, c.to, c.bytes); len(levels) > 0 {
			t.Errorf("%s: got %q, want nothing", what, levels)
		}
	}
}

func TestBelow_BoundsTheBytes(t *testing.T) {
	u := newUnder(t)
	// The first name uses up the bytes.
	levels, _ := u.ask(u.within(node()), "top", 2)
	if want := []string{"top: a ..."}; !reflect.DeepEqual(levels, want) {
		t.Errorf("got %q, want %q", levels, want)
	}
}

func TestBelow_BoundsTheEntries(t *testing.T) {
	b := newBench(t)
	top := b.mkdir(ids.RootObject, "top", 0o755, root)
	for i := range maxBelow + 1 {
		b.create(top, fmt.Sprintf("f%04d", i), tree.TypeRegular|0o644, root)
	}
	out, err := b.Resolve(t.Context(), b.within(node()), &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("top"), BelowBytes: 1 << 30})
	if err != nil || len(out.Below) != 1 || len(out.Below[0].Entries) != maxBelow || out.Below[0].Whole {
		t.Fatalf("got %d levels, %v, want %d entries that are not the whole", len(out.GetBelow()), err, maxBelow)
	}
	b.unlink(top, "f0000")
	out, err = b.Resolve(t.Context(), b.within(node()), &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("top"), BelowBytes: 1 << 30})
	if err != nil || len(out.Below) != 1 || len(out.Below[0].Entries) != maxBelow || !out.Below[0].Whole {
		t.Errorf("got %d levels, %v, want all %d entries", len(out.GetBelow()), err, maxBelow)
	}
}
