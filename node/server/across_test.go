package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// placeAt asks a node for a slice with these cues.
func placeAt(ctx context.Context, t *testing.T, cl *servertest.Client, n *servertest.Node, cues *pb.Cues) geoconfig.SliceRow {
	t.Helper()
	var placed pb.PlaceResponse
	_, err := cl.Call(ctx, n.ID(), wire.Operation, method.Place, &pb.PlaceRequest{Parent: uint64(ids.RootObject), Cues: cues}, nil, &placed)
	if err != nil {
		t.Fatalf("place: %v", err)
	}
	var row geoconfig.SliceRow
	if err := json.Unmarshal(placed.Row, &row); err != nil || row.ID != ids.Slice(placed.Slice) {
		t.Fatalf("place: row %s, %v; want that of slice %d", placed.Row, err, placed.Slice)
	}
	return row
}

// do runs an operation and wants it done.
func do(ctx context.Context, t *testing.T, cl *servertest.Client, id ids.Slice, op *pb.Operation) *pb.Result {
	t.Helper()
	op.TimeNs = 7
	r, err := cl.Operate(ctx, id, op, nil)
	if err != nil || r.Kind != 0 {
		t.Fatalf("%v: %v %v", op.Op, r, err)
	}
	return r
}

// lookup finds a name below the root, as its active tells.
func lookup(ctx context.Context, t *testing.T, c *servertest.Cluster, cl *servertest.Client, dir ids.Object, name string) (object uint64) {
	t.Helper()
	var found pb.ResolveResponse
	_, err := cl.Call(ctx, c.Active(dir.Slice()).ID(), wire.Operation, method.Resolve, &pb.ResolveRequest{
		Header: &pb.ReadHeader{Principal: &pb.Principal{}}, Dir: uint64(dir), Names: [][]byte{[]byte(name)}}, nil, &found)
	if err != nil || found.Refusal != nil || len(found.Steps) != 1 {
		t.Fatalf("resolve %s: %v %v", name, &found, err)
	}
	return found.Steps[0].Object
}

func TestAcross_ObjectsAreMadeRenamedAndRemoved(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl := c.Connect("root")
	other := c.Nodes[0]
	for _, n := range c.Nodes {
		if n != c.Active(ids.RootSlice) {
			other = n
		}
	}
	site := []string{"a", "b", "c"}[other.Index]
	row := placeAt(ctx, t, cl, c.Active(ids.RootSlice), &pb.Cues{Site: site, RepLevel: 2})
	if row.Active != other.ID() || len(row.Members) != 2 || row.Policy.Level != 2 {
		t.Fatalf("got %+v, want the active at %s and one standby", row, site)
	}
	servertest.Await(ctx, t, "the slice to be known at the node that is asked", func() error {
		if !c.Nodes[2].Server().Knows(row.ID) {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	if again := placeAt(ctx, t, cl, c.Nodes[2], &pb.Cues{Site: site, RepLevel: 2}); again.ID != row.ID {
		t.Errorf("got slice %d for the same cues, want %d again", again.ID, row.ID)
	}
	root := uint64(ids.RootObject)
	made := do(ctx, t, cl, row.ID, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Mode: tree.TypeDir | 0o755, Parent: root}}})
	dir := made.Attr.Object
	do(ctx, t, cl, ids.RootSlice, &pb.Operation{Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: root, Name: []byte("far"), Object: dir, Mode: tree.TypeDir, Made: made.Made}}})
	if got := lookup(ctx, t, c, cl, ids.RootObject, "far"); got != dir {
		t.Fatalf("far is %d, want %d", got, dir)
	}
	near := do(ctx, t, cl, ids.RootSlice, create("near")).Attr.Object
	do(ctx, t, cl, ids.RootSlice, &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: root, Name: []byte("near"), NewDir: dir, NewName: []byte("moved")}}})
	if got := lookup(ctx, t, c, cl, ids.Object(dir), "moved"); got != near {
		t.Errorf("far/moved is %d, want %d", got, near)
	}
	if got := lookup(ctx, t, c, cl, ids.RootObject, "near"); got != 0 {
		t.Errorf("near is still %d after it was renamed", got)
	}
	busy, err := cl.Operate(ctx, ids.RootSlice, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: root, Name: []byte("far"), Directory: true}}}, nil)
	if err != nil || fault.Kind(busy.Kind) != fault.NotEmpty {
		t.Errorf("removing a directory that is not empty: got %v %v, want not empty", busy, err)
	}
	do(ctx, t, cl, row.ID, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: dir, Name: []byte("moved")}}})
	do(ctx, t, cl, ids.RootSlice, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: root, Name: []byte("far"), Directory: true}}})
	if got := lookup(ctx, t, c, cl, ids.RootObject, "far"); got != 0 {
		t.Errorf("far is still %d after it was removed", got)
	}
}

func TestGeoConfig_NodesGoOnWithoutIt(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: quick, Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "x", 5)
	c.Away(true)
	more, longest := makeFiles(ctx, t, cl, "y", 20)
	if longest > quickLease {
		t.Errorf("the longest operation took %v while geo-config was away", longest)
	}
	began := time.Now()
	for time.Since(began) < 3*quickLease { // leases need nobody else
		n, _ := makeFiles(ctx, t, cl, fmt.Sprintf("z%d-", len(more)), 1)
		more = append(more, n...)
	}
	for _, n := range c.Nodes { // a standby starts from what lies beside its data
		if n != c.Active(ids.RootSlice) {
			n.Kill()
			n.Start()
			break
		}
	}
	last, _ := makeFiles(ctx, t, cl, "after", 3)
	more = append(more, last...)
	c.Away(false)
	checkFiles(ctx, t, c, cl, append(names, more...))
}

func TestFullDisk_RefusesWritesAndReadsOn(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: func(i int, c *server.Config) {
		quick(i, c)
		c.CapacityBytes, c.ReserveBytes = 3<<20, 1<<20
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "x", 3)
	made := do(ctx, t, cl, ids.RootSlice, create("big"))
	var err error
	for i := 0; err == nil && i < 400; i++ {
		body := make([]byte, 64<<10)
		body[0], body[1] = byte(i), byte(i>>8)
		_, err = cl.Operate(ctx, ids.RootSlice, commit(made.Attr.Object, len(body)), body)
	}
	if !fault.Is(err, fault.NoSpace) {
		t.Fatalf("got %v after 25 MB, want no space", err)
	}
	checkFiles(ctx, t, c, cl, names)
	do(ctx, t, cl, ids.RootSlice, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(ids.RootObject), Name: []byte("big")}}})
}

func TestPlace_NewObjectsWaitForFailback(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: quick, Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	awaitWhole(ctx, t, c)
	home := c.Active(ids.RootSlice)
	home.Kill()
	awaitState(ctx, t, c, home, geoconfig.Failed)
	home.Start()
	c.Away(true) // no slice can be made from now on, and none comes home
	placed := placeAt(ctx, t, c.Connect("root"), home, &pb.Cues{})
	if placed.ID != ids.RootSlice {
		t.Errorf("new objects go to slice %d, want the directory's, which is about to come home", placed.ID)
	}
}
