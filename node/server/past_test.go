package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// rootAsOf lists the root directory as of a time at the active: the names with the sizes
// of what they mean.
func rootAsOf(ctx context.Context, t *testing.T, c *servertest.Cluster, cl *servertest.Client, at hlc.Time) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	servertest.Await(ctx, t, "a listing of the past", func() error {
		var list pb.ListResponse
		b, err := cl.Call(ctx, c.Active(ids.RootSlice).ID(), wire.Operation, method.List, &pb.ListRequest{
			Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}, AsOf: uint64(at)}, Dir: uint64(ids.RootObject)}, nil, &list)
		b.Release()
		switch {
		case fault.Is(err, fault.Invalid):
			t.Fatal(err)
		case err != nil:
			return err
		case list.Refusal != nil:
			return fmt.Errorf("refused: %s", list.Refusal.Message)
		}
		for _, e := range list.Entries {
			out[string(e.Name)] = e.Attr.GetSize()
		}
		return nil
	})
	return out
}

// handOver has the active pass the root's slice on at once.
func handOver(ctx context.Context, t *testing.T, c *servertest.Cluster, to *servertest.Node) {
	t.Helper()
	from := c.Active(ids.RootSlice)
	servertest.Await(ctx, t, "the hand-over", func() error {
		b, err := c.Connect("root").Call(ctx, from.ID(), wire.Operation, method.HandOver, &pb.HandOverRequest{Slice: 1, To: string(to.ID())}, nil, &pb.HandOverResponse{})
		b.Release()
		if c.Active(ids.RootSlice) == to {
			return nil
		}
		return fmt.Errorf("node %d is not the active yet: %w", to.Index, err)
	})
}

// TestPast_IsWholeAtANewMember has a node become the active that got the slice's state
// from another one, and not its log. It has the content of what was removed and of what
// was overwritten.
func TestPast_IsWholeAtANewMember(t *testing.T) {
	t.Parallel()
	copied := heard{what: "a slice's state was copied", then: make(chan struct{}, 1), n: new(atomic.Int32)}
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, c *server.Config) { c.MissedBytes = 64 << 10 },
		Depend: func(_ int, d *server.Deps) { d.Logger = slog.New(copied) }})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "old", 20) // more than the log keeps
	var before [][]byte
	var objects []uint64
	for i := range 5 {
		name := fmt.Sprint("over", i)
		names, before = append(names, name), append(before, contentOf(uint64(i), 200_000))
		objects = append(objects, do(ctx, t, cl, ids.RootSlice, create(name)).Attr.Object)
		overwrite(ctx, t, cl, objects[i], before[i], false)
		overwrite(ctx, t, cl, objects[i], contentOf(uint64(50+i), 200_000), true)
	}
	awaitWhole(ctx, t, c)
	at := hlc.FromWall(time.Now())
	want := rootAsOf(ctx, t, c, cl, at)
	if len(want) != len(names) {
		t.Fatalf("got %v before anything changed, want %d files", want, len(names))
	}
	for i, o := range objects {
		overwrite(ctx, t, cl, o, contentOf(uint64(100+i), 200_000), false)
	}
	for _, name := range names[:10] {
		if gone, err := cl.Operate(ctx, ids.RootSlice, unlinked(name), nil); err != nil || gone.Kind != 0 {
			t.Fatal(gone, err)
		}
	}
	makeFiles(ctx, t, cl, "new", 5)
	fourth := c.Join("oslo")
	drained := c.Active(ids.RootSlice)
	setDraining(ctx, t, c, drained, true)
	servertest.Await(ctx, t, "the fourth node to have the slice", func() error {
		row, err := c.Row(ctx, ids.RootSlice)
		if m, _ := row.Member(fourth.ID()); err != nil || m.State != geoconfig.Normal || row.Active == drained.ID() {
			return fmt.Errorf("%+v, %w", row, err)
		}
		return nil
	})
	if copied.n.Load() == 0 {
		t.Fatal("the fourth node got the slice's log, not its state")
	}
	handOver(ctx, t, c, fourth)
	if got := rootAsOf(ctx, t, c, c.Connect("root"), at); !maps.Equal(got, want) {
		t.Errorf("at the new member the past has %v, want %v", got, want)
	}
	for i, body := range before {
		if !fourth.Server().HasChunk(chunk.Sum(body)) {
			t.Errorf("the new member has not what the beginning of file %d was before", i)
		}
	}
}

// overwrite writes at the beginning of a file, or at its end.
func overwrite(ctx context.Context, t *testing.T, cl *servertest.Client, object uint64, body []byte, atEnd bool) {
	t.Helper()
	op := commit(object, len(body))
	op.GetCommit().Append = atEnd
	if wrote, err := cl.Operate(ctx, ids.RootSlice, op, body); err != nil || wrote.Kind != 0 {
		t.Fatal(wrote, err)
	}
}

// unlinked is an operation that removes a name of the root directory.
func unlinked(name string) *pb.Operation {
	return &pb.Operation{TimeNs: 3, Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(ids.RootObject), Name: []byte(name)}}}
}

// TestPast_EndsWithWhatIsCollected retains nothing: once versions are forgotten, a time
// before is refused, also by a node that starts again.
func TestPast_EndsWithWhatIsCollected(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Log: testing.Verbose(), Configure: func(i int, c *server.Config) {
		quick(i, c)
		c.Retention, c.UploadGrace = 0, time.Second
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cl := c.Connect("root")
	makeFiles(ctx, t, cl, "old", 3)
	at := hlc.FromWall(time.Now())
	want := rootAsOf(ctx, t, c, cl, at)
	for name := range want {
		if gone, err := cl.Operate(ctx, ids.RootSlice, unlinked(name), nil); err != nil || gone.Kind != 0 {
			t.Fatal(gone, err)
		}
	}
	refused := func() error {
		var list pb.ListResponse
		b, err := cl.Call(ctx, c.Nodes[0].ID(), wire.Operation, method.List, &pb.ListRequest{
			Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}, AsOf: uint64(at)}, Dir: uint64(ids.RootObject)}, nil, &list)
		b.Release()
		if err == nil && list.Refusal == nil && len(list.Entries) != len(want) {
			t.Fatalf("the past has %d names, want %d or an error", len(list.Entries), len(want))
		}
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "the earliest time to be had is") {
			return fmt.Errorf("got %w and %d names", err, len(list.Entries))
		}
		return nil
	}
	servertest.Await(ctx, t, "the past to be refused", refused)
	c.Nodes[0].Kill()
	c.Nodes[0].Start()
	servertest.Await(ctx, t, "the past to be refused after a start", refused)
}
