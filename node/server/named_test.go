package server_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// order has a node make or delete a snapshot.
func order(ctx context.Context, cl *servertest.Client, n *servertest.Node, req *pb.SnapshotRequest) (hlc.Time, error) {
	var made pb.SnapshotResponse
	b, err := cl.Call(ctx, n.ID(), wire.Operation, method.Snapshot, req, nil, &made)
	b.Release()
	return hlc.Time(made.GetSnapshot().GetHlc()), err
}

// named asks the active for the time of a snapshot, as a mount does.
func named(ctx context.Context, c *servertest.Cluster, cl *servertest.Client, name string) (hlc.Time, error) {
	var answer pb.GetAttrResponse
	b, err := cl.Call(ctx, c.Active(ids.RootSlice).ID(), wire.Operation, method.GetAttr, &pb.GetAttrRequest{
		Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}, AsOfName: name}, Object: uint64(ids.RootObject)}, nil, &answer)
	b.Release()
	if err == nil && answer.Refusal != nil {
		err = fault.E(fault.Again, "", "", answer.Refusal.Message)
	}
	return hlc.Time(answer.AsOf), err
}

// awaitRefused waits until a time cannot be read any more.
func (x *collected) awaitRefused(at hlc.Time) {
	x.t.Helper()
	servertest.Await(x.ctx, x.t, "a time to be given up", func() error {
		b, err := x.cl.Call(x.ctx, x.c.Active(ids.RootSlice).ID(), wire.Operation, method.List, &pb.ListRequest{
			Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}, AsOf: uint64(at)}, Dir: uint64(ids.RootObject)}, nil, &pb.ListResponse{})
		b.Release()
		if !fault.Is(err, fault.Invalid) {
			return fmt.Errorf("got %w, want that it is not retained", err)
		}
		return nil
	})
}

// TestSnapshot_OutlivesRetention makes a snapshot, removes all that it shows, and retains
// nothing else: it can be read all the same, with its chunks at all members, after a
// takeover, at a new member and after a start of all nodes. What came and went after it does
// not stay. When it is deleted, its space comes back.
func TestSnapshot_OutlivesRetention(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	var chunks []chunk.Address
	for i := range 20 {
		body := contentOf(uint64(3000+i), 200_000)
		chunks = append(chunks, x.put(body))
		object := do(x.ctx, t, x.cl, ids.RootSlice, create(fmt.Sprint("file", i))).Attr.Object
		if kind := x.name(object, chunks[i], len(body)); kind != fault.None {
			t.Fatal(kind)
		}
	}
	at, err := order(x.ctx, x.cl, x.c.Nodes[1], &pb.SnapshotRequest{Make: "before"})
	if err != nil {
		t.Fatal(err)
	}
	want := rootAsOf(x.ctx, t, x.c, x.cl, at)
	if len(want) != 20 {
		t.Fatalf("the snapshot shows %v", want)
	}
	for i := range 20 {
		x.unlink(fmt.Sprint("file", i))
	}
	x.awaitRefused(at + 1)
	for i := range 40 { // 8 MB that no snapshot shows
		name := fmt.Sprint("later", i)
		x.write(name, uint64(4000+i))
		x.unlink(name)
	}
	x.awaitSpace(8 * collectedPack)
	holds := func(what string) {
		t.Helper()
		servertest.Await(x.ctx, t, "the meaning of the name "+what, func() error { // it may pass to another node just now
			got, err := named(x.ctx, x.c, x.cl, "before")
			if err == nil && got != at {
				t.Errorf("%s: the name means %v, want %v", what, got, at)
			}
			return err
		})
		if got := rootAsOf(x.ctx, t, x.c, x.cl, at); !maps.Equal(got, want) {
			t.Errorf("%s: the snapshot shows %v, want %v", what, got, want)
		}
		row, err := x.c.Row(x.ctx, ids.RootSlice)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range x.c.Nodes {
			if _, member := row.Member(n.ID()); !member {
				continue
			}
			for i, a := range chunks {
				if !n.Server().HasChunk(a) {
					t.Fatalf("%s: node %d has not the content of file %d", what, n.Index, i)
				}
			}
		}
	}
	holds("after collection")

	taken := x.c.Active(ids.RootSlice)
	taken.Kill()
	x.c.AwaitRoot(x.ctx)
	taken.Start()
	awaitWhole(x.ctx, t, x.c)
	x.write("still", 5000)
	x.unlink("still")
	holds("after a takeover")

	fourth := x.c.Join("oslo")
	drained := x.c.Active(ids.RootSlice)
	setDraining(x.ctx, t, x.c, drained, true)
	servertest.Await(x.ctx, t, "the fourth node to have the slice", func() error {
		row, err := x.c.Row(x.ctx, ids.RootSlice)
		_, stays := row.Member(drained.ID())
		if m, _ := row.Member(fourth.ID()); err != nil || m.State != geoconfig.Normal || stays {
			return fmt.Errorf("%+v, %w", row, err)
		}
		return nil
	})
	handOver(x.ctx, t, x.c, fourth)
	x.cl = x.c.Connect("root")
	holds("at a new member")

	for _, n := range x.c.Nodes {
		n.Kill()
	}
	for _, n := range x.c.Nodes {
		n.Start()
	}
	x.c.AwaitRoot(x.ctx)
	servertest.Await(x.ctx, t, "the nodes to serve", func() error { _, err := named(x.ctx, x.c, x.cl, "before"); return err })
	holds("after a start")

	if _, err := order(x.ctx, x.cl, x.c.Nodes[1], &pb.SnapshotRequest{Delete: "before"}); err != nil {
		t.Fatal(err)
	}
	servertest.Await(x.ctx, t, "the name to be unknown", func() error {
		if _, err := named(x.ctx, x.c, x.cl, "before"); !fault.Is(err, fault.NotFound) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	x.awaitSpace(4 * collectedPack)
	x.awaitRefused(at)
}

// TestSnapshot_IsKnownWithoutGeoConfig reads a snapshot by its name while geo-config is away,
// also after a start, and nothing of a later time is given up meanwhile.
func TestSnapshot_IsKnownWithoutGeoConfig(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	x.write("file", 1)
	at, err := order(x.ctx, x.cl, x.c.Nodes[0], &pb.SnapshotRequest{Make: "before", KeepNs: int64(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range x.c.Nodes { // each has heard of it
		servertest.Await(x.ctx, t, "the list", func() error {
			var list pb.SnapshotsResponse
			b, err := x.cl.Call(x.ctx, n.ID(), wire.Operation, method.Snapshots, &pb.SnapshotsRequest{}, nil, &list)
			b.Release()
			if err != nil || len(list.Snapshots) != 1 || list.Snapshots[0].Hlc != uint64(at) || list.Snapshots[0].ExpiresNs < time.Now().UnixNano() {
				return fmt.Errorf("got %v, %w", list.Snapshots, err)
			}
			return nil
		})
	}
	x.unlink("file")
	x.awaitRefused(at + 1)
	x.c.Away(true)
	defer x.c.Away(false)
	if got, err := named(x.ctx, x.c, x.cl, "before"); err != nil || got != at {
		t.Errorf("the name means %v, %v, want %v", got, err, at)
	}
	if _, err := named(x.ctx, x.c, x.cl, "other"); err == nil || fault.Is(err, fault.NotFound) {
		t.Errorf("a name that may be new: got %v, want that it cannot be told", err)
	}
	if got := rootAsOf(x.ctx, t, x.c, x.cl, at); len(got) != 1 {
		t.Errorf("the snapshot shows %v", got)
	}
	if _, err := order(x.ctx, x.cl, x.c.Nodes[0], &pb.SnapshotRequest{Make: "new"}); err == nil {
		t.Error("a snapshot was made without geo-config")
	}
}

// TestSnapshot_RefusesBadOrders names what cannot be made, and why.
func TestSnapshot_RefusesBadOrders(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl, n := c.Connect("root"), c.Nodes[0]
	servertest.Await(ctx, t, "the cluster to use the feature", func() error {
		_, err := order(ctx, cl, n, &pb.SnapshotRequest{Make: "one", DryRun: true})
		return err
	})
	if _, err := order(ctx, cl, n, &pb.SnapshotRequest{Make: "one"}); err != nil {
		t.Fatal(err) // the dry run made none
	}
	for _, x := range []struct {
		req  *pb.SnapshotRequest
		want fault.Kind
	}{
		{&pb.SnapshotRequest{}, fault.Invalid},
		{&pb.SnapshotRequest{Make: "two", Delete: "one"}, fault.Invalid},
		{&pb.SnapshotRequest{Make: "one"}, fault.Exists},
		{&pb.SnapshotRequest{Make: "one", DryRun: true}, fault.Exists},
		{&pb.SnapshotRequest{Make: "a/b"}, fault.Invalid},
		{&pb.SnapshotRequest{Make: "2026-01-31"}, fault.Invalid},
		{&pb.SnapshotRequest{Make: "-1h"}, fault.Invalid},
		{&pb.SnapshotRequest{Make: "two", KeepNs: -1}, fault.Invalid},
		{&pb.SnapshotRequest{Delete: "none"}, fault.NotFound},
		{&pb.SnapshotRequest{Delete: "one", DryRun: true}, fault.None},
		{&pb.SnapshotRequest{Delete: "one"}, fault.None},
		{&pb.SnapshotRequest{Delete: "one"}, fault.NotFound},
		{&pb.SnapshotRequest{Make: "brief", KeepNs: 1}, fault.None},
	} {
		if _, err := order(ctx, cl, n, x.req); fault.KindOf(err) != x.want {
			t.Errorf("%v: got %v, want %v", x.req, err, x.want)
		}
	}
	servertest.Await(ctx, t, "what has expired to be deleted", func() error {
		if _, err := order(ctx, cl, n, &pb.SnapshotRequest{Delete: "brief", DryRun: true}); !fault.Is(err, fault.NotFound) {
			return fmt.Errorf("got %w, want that it is gone", err)
		}
		return nil
	})
}
