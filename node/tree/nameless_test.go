package tree

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// TestCreate_NamelessLivesWhileItIsHeld follows O_TMPFILE: the file lives while
// its maker holds it, only the holder may name it, and without a name it goes
// when let go.
func TestCreate_NamelessLivesWhileItIsHeld(t *testing.T) {
	const maker, other = 7, 8
	d := newDesk(t)
	do := func(client uint64, want fault.Kind, op *pb.Operation) *pb.Result {
		t.Helper()
		r, _ := d.run(rootID, super, client, op, nil)
		if fault.Kind(r.Kind) != want {
			t.Fatalf("%v by client %d: got %v, want %v", op, client, fault.Kind(r.Kind), want)
		}
		return r
	}
	create := func(mode uint32) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(rootID), Mode: mode, Nameless: true}}}
	}
	link := func(o uint64, name string) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: o, Dir: uint64(rootID), Name: []byte(name)}}}
	}
	release := func(o uint64) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: o, Client: maker, Release: true}}}
	}
	exists := func(o uint64) bool {
		_, err := GetAttr(d.places[1].over, ids.Object(o), false, false)
		return err == nil
	}
	do(maker, fault.Invalid, create(TypeDir|0o755))
	made := do(maker, fault.None, create(TypeRegular|0o600)).Attr
	if made.Nlink != 0 || !exists(made.Object) {
		t.Fatalf("made %v, want a file with no link that is there", made)
	}
	do(other, fault.NotFound, link(made.Object, "stolen"))
	if named := do(maker, fault.None, link(made.Object, "named")).Attr; named.Nlink != 1 {
		t.Errorf("after naming it has %d links, want 1", named.Nlink)
	}
	do(maker, fault.None, release(made.Object))
	if !exists(made.Object) {
		t.Error("a named file went when it was let go")
	}
	lost := do(maker, fault.None, create(TypeRegular|0o600)).Attr
	do(maker, fault.None, release(lost.Object))
	if exists(lost.Object) {
		t.Error("a file without a name is still there after its holder let it go")
	}
}
