package server_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
)

// foreign is a cluster of two slices: the root's, with a directory of ann's, and
// another one.
type foreign struct {
	ctx       context.Context
	c         *servertest.Cluster
	root, ann *servertest.Client
	dir       uint64 // ann's
	slice     ids.Slice
}

func newForeign(t *testing.T) *foreign {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}, Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	f := &foreign{ctx: ctx, c: c, root: c.Connect("root"), ann: c.Connect("ann")}
	f.dir = do(ctx, t, f.root, ids.RootSlice, makeDir("ann", 0o755)).Attr.Object
	uid := uint32(1000)
	do(ctx, t, f.root, ids.RootSlice, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: f.dir, Uid: &uid}}})
	f.slice = placeAt(ctx, t, f.root, c.Nodes[0], &pb.Cues{RepLevel: 1}).ID
	if f.slice == ids.RootSlice {
		t.Fatal("no second slice was made")
	}
	return f
}

func makeDir(name string, mode uint32) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(ids.RootObject), Name: []byte(name), Mode: tree.TypeDir | mode}}}
}

// apart makes an object in the second slice for a directory of the first.
func (f *foreign) apart(t *testing.T, as *servertest.Client, dir uint64, mode uint32) *pb.Result {
	t.Helper()
	return do(f.ctx, t, as, f.slice, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Mode: mode, Parent: dir}}})
}

func link(dir uint64, name string, made *pb.Result) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: dir, Name: []byte(name), Object: made.Attr.Object,
		Mode: made.Attr.Mode & tree.TypeMask, Made: made.Made}}}
}

// refused wants an operation refused with a kind, by whatever part of the node.
func (f *foreign) refused(t *testing.T, what string, as *servertest.Client, op *pb.Operation, want fault.Kind) {
	t.Helper()
	r, err := as.Operate(f.ctx, ids.RootSlice, op, nil)
	if got := fault.KindOf(err); got != want && fault.Kind(r.GetKind()) != want {
		t.Errorf("%s: got %v %v, want %v", what, r, err, want)
	}
}

func TestAcross_OnlyItsMakerNamesAnObject(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	made := f.apart(t, f.root, uint64(ids.RootObject), tree.TypeRegular|0o600)
	do(f.ctx, t, f.root, ids.RootSlice, link(uint64(ids.RootObject), "secret", made))

	forged := &pb.Result{Attr: made.Attr}
	f.refused(t, "a name without a ticket", f.ann, link(f.dir, "mine", forged), fault.Permission)
	f.refused(t, "a name with root's ticket", f.ann, link(f.dir, "mine", made), fault.Permission)

	own := f.apart(t, f.ann, f.dir, tree.TypeRegular|0o600)
	stolen := &pb.Result{Attr: made.Attr, Made: own.Made}
	f.refused(t, "a name with the ticket of another object", f.ann, link(f.dir, "mine", stolen), fault.Permission)
	asDir := &pb.Result{Attr: &pb.Attr{Object: own.Attr.Object, Mode: tree.TypeDir}, Made: own.Made}
	f.refused(t, "a file named as a directory", f.ann, link(f.dir, "mine", asDir), fault.Permission)
	other := do(f.ctx, t, f.root, ids.RootSlice, makeDir("open", 0o777)).Attr.Object
	f.refused(t, "a name in another directory", f.ann, link(other, "mine", own), fault.Permission)

	do(f.ctx, t, f.ann, ids.RootSlice, link(f.dir, "mine", own))
	if got := lookup(f.ctx, t, f.c, f.root, ids.RootObject, "secret"); got != made.Attr.Object {
		t.Errorf("secret is object %d, want %d", got, made.Attr.Object)
	}
}

func TestAcross_DirectoryIsNamedOnce(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	made := f.apart(t, f.ann, f.dir, tree.TypeDir|0o700)
	do(f.ctx, t, f.ann, ids.RootSlice, link(f.dir, "one", made))
	f.refused(t, "a second name", f.ann, link(f.dir, "two", made), fault.Stale)
	// Moved away, it cannot be named again above where it is now.
	do(f.ctx, t, f.ann, ids.RootSlice, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: f.dir, Name: []byte("one"), Directory: true}}})
	f.refused(t, "a name after it was removed", f.ann, link(f.dir, "two", made), fault.Stale)
}

// TestAcross_ObjectGetsNoForeignGroup makes objects with groups. The group of an
// object is one of its maker's, or that of a directory which hands its group on.
func TestAcross_ObjectGetsNoForeignGroup(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	const theirs = 50
	shared := do(f.ctx, t, f.root, ids.RootSlice, makeDir("shared", 0o777)).Attr.Object
	gid, mode := uint32(theirs), uint32(0o2777)
	do(f.ctx, t, f.root, ids.RootSlice, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: shared, Gid: &gid, Mode: &mode}}})
	apart := func(dir uint64, gid uint32) (*pb.OperateResponse, error) {
		r, err := f.ann.Operate(f.ctx, f.slice, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{
			Mode: tree.TypeRegular | 0o640, Parent: dir, UseGid: true, Gid: gid}}}, nil)
		return &pb.OperateResponse{Result: r}, err
	}
	for _, x := range []struct {
		what string
		dir  uint64
		gid  uint32
		want fault.Kind
	}{
		{"a group that is not ann's", f.dir, theirs, fault.Permission},
		{"root's group", f.dir, 0, fault.Permission},
		{"another than the directory hands on", shared, 0, fault.Permission},
		{"what the directory hands on", shared, theirs, fault.None},
	} {
		r, err := apart(x.dir, x.gid)
		if got := fault.KindOf(err); got != x.want || x.want == fault.None && r.Result.GetAttr().GetGid() != x.gid {
			t.Errorf("%s: got %v, %v, want %v", x.what, r, err, x.want)
		}
	}
}
