package server_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// plant makes an object in the root's slice.
func plant(ctx context.Context, t *testing.T, cl *servertest.Client, dir uint64, name string, mode uint32) uint64 {
	t.Helper()
	return do(ctx, t, cl, ids.RootSlice, &pb.Operation{TimeNs: 1, Op: &pb.Operation_Create{Create: &pb.Create{Dir: dir, Name: []byte(name), Mode: mode}}}).Attr.Object
}

// TestBelow_NamesComeAlong asks for one directory, with what is below. The
// directories come first, as many as there is room for, each under a lease, and
// nothing that the caller may not read and search.
func TestBelow_NamesComeAlong(t *testing.T) {
	t.Parallel()
	const dirMode, fileMode = tree.TypeDir | 0o755, tree.TypeRegular | 0o644
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	root := c.Connect("root")
	top := plant(ctx, t, root, uint64(ids.RootObject), "top", dirMode)
	a := plant(ctx, t, root, top, "a", dirMode)
	b := plant(ctx, t, root, a, "b", dirMode)
	unread := plant(ctx, t, root, top, "unread", tree.TypeDir|0o711)
	unsearched := plant(ctx, t, root, top, "unsearched", tree.TypeDir|0o744)
	for i := range 40 {
		plant(ctx, t, root, a, fmt.Sprintf("f%02d", i), fileMode)
	}
	plant(ctx, t, root, b, "g", fileMode)
	plant(ctx, t, root, unread, "x", dirMode)
	plant(ctx, t, root, unsearched, "y", dirMode)

	active := c.Active(ids.RootSlice)
	ask := func(user string, most uint32) *pb.ResolveResponse {
		t.Helper()
		cl := c.Connect(user)
		session, err := cl.Session(ctx, active.ID())
		if err != nil {
			t.Fatal(err)
		}
		out := &pb.ResolveResponse{}
		_, err = cl.Call(ctx, active.ID(), wire.Operation, method.Resolve, &pb.ResolveRequest{
			Header: &pb.ReadHeader{Slice: 1, Session: session.Session, Principal: &pb.Principal{}},
			Dir:    uint64(ids.RootObject), Names: [][]byte{[]byte("top")}, BelowBytes: most}, nil, out)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	told := func(r *pb.ResolveResponse) (dirs map[uint64][]string, whole []uint64) {
		dirs = map[uint64][]string{}
		for _, d := range r.Below {
			for _, e := range d.Entries {
				if e.Attr == nil {
					t.Errorf("%s comes without attributes", e.Name)
				}
				dirs[d.Dir] = append(dirs[d.Dir], string(e.Name))
			}
			if d.Whole {
				whole = append(whole, d.Dir)
			}
			if !slices.ContainsFunc(r.Grants, func(g *pb.Grant) bool { return g.Object == d.Dir && g.What == pb.Grant_NAMES }) {
				t.Errorf("names of %x come without a lease on them", d.Dir)
			}
		}
		return dirs, whole
	}
	if r := ask("root", 0); len(r.Below) != 0 {
		t.Errorf("%d directories come to who did not want any", len(r.Below))
	}
	dirs, whole := told(ask("root", 64<<10))
	if len(whole) != 7 || len(dirs[a]) != 41 || dirs[a][0] != "b" || len(dirs[unread]) != 1 {
		t.Errorf("root is told %v, of %d directories all; want all of 7, directories first", dirs, len(whole))
	}
	dirs, whole = told(ask("ann", 64<<10))
	if len(whole) != 3 || len(dirs[top]) != 3 || len(dirs[b]) != 1 || dirs[unread] != nil || dirs[unsearched] != nil {
		t.Errorf("who may not look into two of the directories is told %v", dirs)
	}
	dirs, _ = told(ask("root", 2000))
	if len(dirs[a]) == 0 || dirs[a][0] != "b" || len(dirs[a])+len(dirs[top])+len(dirs[b]) > 30 {
		t.Errorf("in 2,000 bytes are %v; want a few names, directories before files", dirs)
	}
}
