package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// usageOf sums up the pages of the root slice's space at a node.
func (x *collected) usageOf(node ids.Node, limit uint32) (sum tree.Usage, first *pb.SpaceResponse) {
	x.t.Helper()
	var behind []byte
	for {
		answer := &pb.SpaceResponse{}
		if _, err := x.cl.Call(x.ctx, node, wire.Operation, method.Space, &pb.SpaceRequest{Slice: uint32(ids.RootSlice), Behind: behind, Limit: limit}, nil, answer); err != nil {
			x.t.Fatal(err)
		}
		var page tree.Usage
		if err := json.Unmarshal(answer.Space, &page); err != nil {
			x.t.Fatal(err)
		}
		sum.Add(&page)
		if first == nil {
			first = answer
		}
		if behind = answer.Next; len(behind) == 0 {
			return sum, first
		}
	}
}

// awaitUsage waits until a node's figures are as wanted.
func (x *collected) awaitUsage(what string, ok func(u *tree.Usage, first *pb.SpaceResponse) bool) {
	x.t.Helper()
	for _, n := range x.c.Nodes {
		servertest.Await(x.ctx, x.t, what, func() error {
			u, first := x.usageOf(n.ID(), 3)
			if whole, _ := x.usageOf(n.ID(), 0); u != whole {
				return fault.Errorf(fault.Again, "", "", "pages of 3 rows say %+v, one page %+v", u, whole)
			}
			if !ok(&u, first) {
				return fault.Errorf(fault.Again, "", "", "node %d: %+v, %d objects with %d bytes", n.Index, u, first.Objects, first.StoredBytes)
			}
			return nil
		})
	}
}

// TestSpace_TellsOfEveryReplicaWhatHoldsIt shares content, overwrites and deletes, and asks
// each of three replicas, in small pages and in large ones.
func TestSpace_TellsOfEveryReplicaWhatHoldsIt(t *testing.T) {
	t.Parallel()
	x := startCollectedAs(t, func(c *server.Config) { c.Retention = time.Hour })
	const size = 200_000
	x.write("one", 1)
	x.write("another with the same content", 1)
	x.awaitUsage("shared content to be told", func(u *tree.Usage, first *pb.SpaceResponse) bool {
		return first.Objects == 3 && first.StoredBytes == 2*size && u.Named.Bytes > size && u.Named.Bytes < size+1000 &&
			u.Repeated == u.Named.Bytes && u.Older.Count == 0 && u.Waiting.Count == 0 && u.Missing == 0 && u.Deleted.Count == 0 && u.Replaced.Count == 0
	})
	object := x.write("changed", 2)
	const part = 50_000
	body := contentOf(3, part)
	for range 2 { // the part is a chunk of its own, and then another one takes its place
		op := commit(object, part)
		op.GetCommit().Size = nil
		if wrote, err := x.cl.Operate(x.ctx, ids.RootSlice, op, body); err != nil || wrote.Kind != 0 {
			t.Fatalf("%v %v", wrote, err)
		}
		body = contentOf(5, part)
	}
	x.awaitUsage("older versions to be told", func(u *tree.Usage, first *pb.SpaceResponse) bool {
		return first.StoredBytes == 3*size && u.Replaced == (tree.Amount{Count: 2, Bytes: 2 * size}) && u.Older.Bytes > part && u.Older.Bytes < part+1000 &&
			u.Unwalked == 0 && u.Waiting.Count == 0
	})
	x.write("deleted", 4)
	x.unlink("deleted")
	x.awaitUsage("a deleted file to be told", func(u *tree.Usage, first *pb.SpaceResponse) bool {
		return first.Objects == 4 && first.StoredBytes == 3*size && u.Deleted == (tree.Amount{Count: 1, Bytes: size}) && u.Unwalked == 1 && u.WaitingWalks == 0 &&
			u.Named.Bytes > 3*size+part && u.Named.Bytes < 3*size+part+2000 && u.Missing == 0
	})
}

// TestStatus_TellsWhatHoldsEachDisk has three chunks in the packs, two of which a file has.
func TestStatus_TellsWhatHoldsEachDisk(t *testing.T) {
	t.Parallel()
	x := startCollectedAs(t, func(c *server.Config) { c.Retention = time.Hour })
	const size = 60_000
	x.put(contentOf(3, size))
	for i := range 2 {
		object := do(x.ctx, t, x.cl, ids.RootSlice, create(fmt.Sprint("file", i))).Attr.Object
		if kind := x.name(object, x.put(contentOf(uint64(i), size)), size); kind != fault.None {
			t.Fatal(kind)
		}
	}
	for _, n := range x.c.Nodes {
		servertest.Await(x.ctx, t, "the node to tell of the files", func() error {
			var answer pb.StatusResponse
			var s status.Node
			_, err := x.cl.Call(x.ctx, n.ID(), wire.Operation, method.Status, &pb.StatusRequest{}, nil, &answer)
			if err == nil {
				err = json.Unmarshal(answer.Status, &s)
			}
			if err != nil {
				return err
			}
			if d := s.Disk; d == nil || d.LiveBytes != 2*size || d.RetainedBytes < size || d.RetainedBytes > size+1000 || d.EmptyBytes <= 0 || d.JournalBytes <= 0 {
				return fault.Errorf(fault.Again, "", "", "node %d: %+v", n.Index, s.Disk)
			}
			return nil
		})
	}
}

func TestSpace_RefusesWhatItCannotTell(t *testing.T) {
	t.Parallel()
	x := startCollected(t)
	node := x.c.Nodes[0].ID()
	for _, c := range []struct {
		name string
		req  *pb.SpaceRequest
		want fault.Kind
	}{
		{"a slice that is not known", &pb.SpaceRequest{Slice: 999}, fault.NotFound},
		{"a place of no kind", &pb.SpaceRequest{Slice: 1, Behind: []byte("?")}, fault.Invalid},
		{"half an address", &pb.SpaceRequest{Slice: 1, Behind: []byte("r12")}, fault.Invalid},
		{"another kind of row", &pb.SpaceRequest{Slice: 1, Behind: []byte("dc2345678")}, fault.Invalid},
	} {
		if _, err := x.cl.Call(x.ctx, node, wire.Operation, method.Space, c.req, nil, &pb.SpaceResponse{}); !fault.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(x.ctx)
	cancel()
	if _, err := x.cl.Call(ctx, node, wire.Operation, method.Space, &pb.SpaceRequest{Slice: 1}, nil, &pb.SpaceResponse{}); err == nil {
		t.Error("a request that was given up has an answer")
	}
}
