package reading

import (
	"context"
	"reflect"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// heardBefore is how long ago the active was heard, in every test.
const heardBefore = 7 * time.Second

// become gives the node another role in a slice, with something applied.
func (b *bench) become(id ids.Slice, role replica.RoleKind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row := b.rows[id]
	p := operate.NewPublished(id, role, &row, 0)
	p.Applied.Store(uint64(b.serials[id]))
	b.parts[id] = p
	b.Heard = func(context.Context, ids.Slice) (time.Duration, error) { return heardBefore, nil }
}

func eventual(who Asker) Asker { who.Eventual = true; return who }

func TestCopies_AnswerWhoTakesThem(t *testing.T) {
	b := newBench(t)
	d := b.mkdir(ids.RootObject, "d", 0o755, root)
	f := b.file(d, "f", 0o644, root, "hello")
	b.become(rootSlice, replica.RoleStandby)
	who := eventual(b.within(node()))
	attr, err := b.GetAttr(t.Context(), who, &pb.GetAttrRequest{Object: uint64(f), Content: true, Opening: true})
	if err != nil || attr.Refusal != nil || string(attr.Attr.Content.GetInline()) != "hello" {
		t.Fatalf("attributes: got %v, %v", attr, err)
	}
	walk, err := b.Resolve(t.Context(), who, &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("d/f")})
	if err != nil || walk.Refusal != nil || len(walk.Steps) != 2 || ids.Object(walk.Steps[1].Object) != f {
		t.Fatalf("a walk: got %v, %v", walk, err)
	}
	page, err := b.List(t.Context(), who, &pb.ListRequest{Dir: uint64(d)})
	if err != nil || page.Refusal != nil || len(page.Entries) != 1 {
		t.Fatalf("a listing: got %v, %v", page, err)
	}
	if n := len(attr.Grants) + len(walk.Grants) + len(page.Grants); n > 0 {
		t.Errorf("%d leases came with copies", n)
	}
	want := &pb.Copy{Serial: uint64(b.serials[rootSlice]), Epoch: uint64(epoch), AgeNs: int64(heardBefore)}
	for _, got := range []*pb.Copy{attr.Copy, walk.Copy, page.Copy} {
		if got.GetSerial() != want.Serial || got.GetEpoch() != want.Epoch || got.GetAgeNs() != want.AgeNs {
			t.Errorf("the copy is said to be %v, want %v", got, want)
		}
	}
}

func TestCopies_AreNoneWhereTheNodeActs(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, root, "hello")
	out, err := b.GetAttr(t.Context(), eventual(b.within(node())), &pb.GetAttrRequest{Object: uint64(f)})
	if err != nil || out.Copy == nil || out.Copy.AgeNs != 0 || len(out.Grants) != 1 {
		t.Errorf("got %v, %v, want a lease and no age", out, err)
	}
	if out, err = b.GetAttr(t.Context(), b.within(node()), &pb.GetAttrRequest{Object: uint64(f)}); err != nil || out.Copy != nil {
		t.Errorf("unasked: got %v, %v, want nothing said of a copy", out.GetCopy(), err)
	}
}

// TestCopies_TellOfObjectsThatAreNotMerged asks for an object of which a side log has
// something, for one of which it has nothing, and for one that is gone.
func TestCopies_TellOfObjectsThatAreNotMerged(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, root, "hello")
	g := b.file(ids.RootObject, "g", 0o644, root, "hello")
	gone := ids.NewObject(rootSlice, 1<<30)
	b.Unmerged = func(o ids.Object, names [][]byte) bool {
		return o == f || o == gone || o == ids.RootObject && len(names) == 1 && string(names[0]) == "f"
	}
	b.become(rootSlice, replica.RoleStandby)
	who := eventual(b.within(node()))
	for o, want := range map[ids.Object]bool{f: true, g: false, gone: true} {
		out, err := b.GetAttr(t.Context(), who, &pb.GetAttrRequest{Object: uint64(o), GoneToo: true})
		if err != nil || out.Copy.GetObjectUnmerged() != want || (out.Attr == nil) != (o == gone) {
			t.Errorf("object %v: got %v, %v, want it unmerged: %v", o, out, err, want)
		}
	}
	for name, want := range map[string]bool{"f": true, "g": false} {
		out, err := b.GetAttr(t.Context(), who, &pb.GetAttrRequest{Object: uint64(ids.RootObject), Names: [][]byte{[]byte(name)}})
		if err != nil || out.Copy.GetObjectUnmerged() != want {
			t.Errorf("the name %s: got %v, %v, want it unmerged: %v", name, out, err, want)
		}
	}
	if _, err := b.GetAttr(t.Context(), who, &pb.GetAttrRequest{Object: uint64(ids.RootObject), Names: make([][]byte, maxNames+1)}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("too many names: got %v", err)
	}
	if out, err := b.GetAttr(t.Context(), who, &pb.GetAttrRequest{Object: uint64(gone)}); err == nil && out.Refusal == nil {
		t.Errorf("who does not ask for what is gone got %v", out)
	}
}

// TestCopies_ComeFromNormalMembersOnly asks nodes of every role.
func TestCopies_ComeFromNormalMembersOnly(t *testing.T) {
	b := newBench(t)
	f := b.file(ids.RootObject, "f", 0o644, root, "hello")
	answers := map[replica.RoleKind]bool{}
	for role := replica.RoleNone; role <= replica.RoleYielding; role++ {
		b.become(rootSlice, role)
		out, err := b.GetAttr(t.Context(), eventual(node()), &pb.GetAttrRequest{Object: uint64(f)})
		if err != nil {
			t.Fatal(err)
		}
		answers[role] = out.Refusal == nil
		if out, err = b.GetAttr(t.Context(), node(), &pb.GetAttrRequest{Object: uint64(f)}); err != nil || out.Refusal == nil {
			t.Errorf("a %v answers who wants the truth: %v, %v", role, out, err)
		}
	}
	want := map[replica.RoleKind]bool{replica.RoleNone: false, replica.RoleJunior: false, replica.RoleStandby: true,
		replica.RoleActive: true, replica.RoleLeading: true, replica.RoleYielding: true}
	if !reflect.DeepEqual(answers, want) {
		t.Errorf("got %v, want %v", answers, want)
	}
}

func TestCopies_KeepToPermissions(t *testing.T) {
	b := newBench(t)
	shut := b.mkdir(ids.RootObject, "shut", 0o700, ann)
	f := b.file(shut, "f", 0o644, ann, "hello")
	secret := b.file(ids.RootObject, "secret", 0o600, ann, "hello")
	b.become(rootSlice, replica.RoleStandby)
	who := eventual(asBob())
	_, err := b.GetAttr(t.Context(), who, &pb.GetAttrRequest{Object: uint64(f), Content: true})
	b.fails("an object below a shut directory, by its ID", err, fault.Permission)
	_, err = b.List(t.Context(), who, &pb.ListRequest{Dir: uint64(shut)})
	b.fails("a listing of it", err, fault.Permission)
	out, err := b.GetAttr(t.Context(), who, &pb.GetAttrRequest{Object: uint64(secret), Content: true})
	if err != nil || len(out.Attr.Content.GetInline()) > 0 || !out.Attr.Content.GetWithheld() {
		t.Errorf("a private file: got %v, %v, want its content withheld", out, err)
	}
}

// TestCopies_WaitForNoIntent reads a name that an operation over several slices holds.
func TestCopies_WaitForNoIntent(t *testing.T) {
	b := newBench(t)
	near := b.apart(ids.RootObject, "near", nearSlice, tree.TypeDir|0o755, root)
	b.file(ids.RootObject, "f", 0o644, root, "hello")
	i := b.move(ids.RootObject, "f", near)
	b.become(rootSlice, replica.RoleStandby)
	looked, committed := 0, b.Committed
	b.Committed = func(id ids.Slice) tree.View { looked++; return committed(id) }
	_, err := b.Resolve(t.Context(), eventual(node()), &pb.ResolveRequest{Dir: uint64(ids.RootObject), Names: path("f")})
	if b.fails("a name that an operation holds", err, fault.Again); looked != 1 {
		t.Errorf("it was looked up %d times, want once", looked)
	}
	b.act(rootSlice, until)
	i.finish()
}
