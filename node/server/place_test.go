package server_test

import (
	"context"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

func place(ctx context.Context, cl *servertest.Client, n *servertest.Node, cues *pb.Cues) error {
	_, err := cl.Call(ctx, n.ID(), wire.Operation, method.Place, &pb.PlaceRequest{Parent: uint64(ids.RootObject), Cues: cues}, nil, &pb.PlaceResponse{})
	return err
}

func countSlices(ctx context.Context, t *testing.T, c *servertest.Cluster) int {
	t.Helper()
	rows, err := c.Store.Read(ctx, geoconfig.Query{Slices: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return len(rows.Slices)
}

func TestPlace_RefusesCuesThatNoPathSpells(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ann := c.Connect("ann")
	for _, tt := range []struct {
		cues *pb.Cues
		want fault.Kind
	}{
		{&pb.Cues{RepLevel: cue.MaxCopies + 1}, fault.Invalid},
		{&pb.Cues{RepLevel: 1 << 31}, fault.Invalid},
		{&pb.Cues{RepSites: cue.MaxCopies + 1}, fault.Invalid},
		{&pb.Cues{Site: "nowhere"}, fault.Invalid},
		{&pb.Cues{CoherenceNs: 12345}, fault.Invalid},
		{&pb.Cues{CoherenceNs: int64(time.Minute), WriteOnce: true}, fault.Invalid},
		{&pb.Cues{EventualMerge: true}, fault.NotSupported},
	} {
		if err := place(ctx, ann, c.Nodes[0], tt.cues); fault.KindOf(err) != tt.want {
			t.Errorf("%v: got %v, want %v", tt.cues, err, tt.want)
		}
		made := &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(ids.RootObject), Name: []byte("f"), Mode: tree.TypeRegular, Cues: tt.cues}}}
		if tt.cues.Site != "" {
			continue // a site may have been there when its directory was made
		}
		if _, err := c.Connect("root").Operate(ctx, ids.RootSlice, made, nil); fault.KindOf(err) != tt.want {
			t.Errorf("a file with %v: got %v, want %v", tt.cues, err, tt.want)
		}
	}
	if n := countSlices(ctx, t, c); n != 1 {
		t.Errorf("there are %d slices, want the root's alone", n)
	}
}

func TestUserLimits_BoundNewSlices(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, c *server.Config) { c.MaxNewSlices = 2 }})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ann, bob := c.Connect("ann"), c.Connect("bob")
	for _, level := range []uint32{4, 5} {
		if err := place(ctx, ann, c.Nodes[0], &pb.Cues{RepLevel: level}); err != nil {
			t.Fatalf("level %d: %v", level, err)
		}
	}
	if err := place(ctx, ann, c.Nodes[0], &pb.Cues{RepLevel: 6}); !fault.Is(err, fault.Quota) {
		t.Errorf("ann's third slice: got %v, want Quota", err)
	}
	if err := place(ctx, ann, c.Nodes[0], &pb.Cues{RepLevel: 5}); err != nil {
		t.Errorf("ann's slice that is there: %v", err)
	}
	if err := place(ctx, bob, c.Nodes[0], &pb.Cues{RepLevel: 6}); err != nil {
		t.Errorf("bob's first slice: %v", err)
	}
}
