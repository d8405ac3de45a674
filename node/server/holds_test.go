package server_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
)

// TestUserLimits_BoundHolds gives each user four holds, for all its clients
// together. What is open when its name is removed is held beyond that.
func TestUserLimits_BoundHolds(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, c *server.Config) { c.MaxUserHolds = 4 }})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	dir := do(ctx, t, c.Connect("root"), ids.RootSlice, makeDir("tmp", 0o777)).Attr.Object
	ann, second, bob := c.Connect("ann"), c.Connect("ann"), c.Connect("bob")
	run := func(cl *servertest.Client, op *pb.Operation) *pb.Result {
		t.Helper()
		return do(ctx, t, cl, ids.RootSlice, op)
	}
	nameless := func() *pb.Operation {
		return &pb.Operation{TimeNs: 7, Op: &pb.Operation_Create{Create: &pb.Create{Dir: dir, Mode: tree.TypeRegular | 0o600, Nameless: true}}}
	}
	file := &pb.Create{Dir: dir, Name: []byte("open"), Mode: tree.TypeRegular | 0o600}
	open := run(ann, &pb.Operation{Op: &pb.Operation_Create{Create: file}}).Attr.Object
	var held []uint64
	for range 2 {
		held = append(held, run(ann, nameless()).Attr.Object, run(second, nameless()).Attr.Object)
	}
	refused := func(what string, op *pb.Operation) {
		t.Helper()
		if r, err := ann.Ask(ctx, ids.RootSlice, op, nil); !fault.Is(err, fault.Overloaded) {
			t.Errorf("%s: got %v, %v; want Overloaded", what, r, err)
		}
	}
	refused("a fifth", nameless())
	refused("a hold of a file with a name", &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: open}}})
	run(bob, nameless())
	run(ann, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: dir, Name: file.Name, Open: true}}})
	if there, err := tree.HasOpen(c.Nodes[0].Server().Committed(ids.RootSlice), ids.Object(open), ann.ID); !there || err != nil {
		t.Errorf("the file that was open when its name was removed is held: %v, %v", there, err)
	}
	run(ann, &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: open, Release: true}}})
	refused("with four still", nameless())
	run(second, &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: held[1], Release: true}}})
	run(ann, nameless())
}
