package server_test

import (
	"bytes"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/wire"
)

// outsider returns a node that is no member of the root's slice.
func (w *world) outsider() *servertest.Node {
	w.Helper()
	row, err := w.c.Row(w.ctx, ids.RootSlice)
	if err != nil {
		w.Fatal(err)
	}
	for _, n := range w.c.Nodes {
		if _, member := row.Member(n.ID()); !member {
			return n
		}
	}
	w.Fatalf("all nodes are members of the root's slice: %v", row.Members)
	return nil
}

// getAtSite asks a node for all of a chunk of a file, as a client of its site does.
func (a *asker) getAtSite(node ids.Node, x *bobs, c chunk.Address, readable []byte) ([]byte, error) {
	b, err := a.call(node, wire.Chunk, method.Get, &pb.GetRequest{Slice: 1, Addresses: c[:], Parts: []*pb.GetRequest_Part{{Length: uint32(len(x.body))}},
		Object: x.file, Root: x.root[:], Height: x.height, Readable: readable, Sharing: pb.Sharing_SITE}, nil, &pb.GetResponse{})
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return bytes.Clone(b.Bytes()), nil
}

// TestShared_WantsATicketAtEveryNode asks a node that is no member of the slice, when
// it has the chunk already. What it keeps is as secret as the file.
func TestShared_WantsATicketAtEveryNode(t *testing.T) {
	t.Parallel()
	var ahead [4]atomic.Int64
	w := newWorldAt(t, func(i int) time.Time { return time.Now().Add(time.Duration(ahead[i].Load())) }, "a", "b", "c", "d")
	outside := w.outsider()
	node := outside.ID()
	bob, ann := w.askers[withRight], w.askers[noRight]
	x, y := w.fresh("file"), w.fresh("other")
	bob.look(x, "file")
	bob.look(y, "other")
	servertest.Await(w.ctx, t, "the node to bring the chunk", func() error {
		got, err := bob.getAtSite(node, x, x.chunk, x.readable)
		if err == nil && !bytes.Equal(got, x.body) {
			t.Fatalf("%d bytes came, or others", len(got))
		}
		return err
	})
	counts := outside.Server().Figures().Shared
	before := counts()
	if got, err := bob.getAtSite(node, x, x.chunk, x.readable); err != nil || !bytes.Equal(got, x.body) {
		t.Errorf("again: %d bytes, %v", len(got), err)
	}
	if now := counts(); now.FetchedBytes != before.FetchedBytes || now.ServedBytes != before.ServedBytes+uint64(len(x.body)) {
		t.Errorf("what is kept: %+v, then %+v", before, now)
	}
	other := *x
	other.file = y.file
	for _, c := range []struct {
		name     string
		who      *asker
		of       *bobs
		chunk    chunk.Address
		readable []byte
	}{
		{"a user without a ticket", bob, x, x.chunk, nil},
		{"another user with bob's ticket", ann, x, x.chunk, x.readable},
		{"a ticket of another file", bob, x, x.chunk, y.readable},
		{"a ticket of another file, which is named", bob, &other, x.chunk, y.readable},
		{"a chunk of another file", bob, y, x.chunk, y.readable},
	} {
		if got, err := c.who.getAtSite(node, c.of, c.chunk, c.readable); !fault.Is(err, fault.Permission) {
			t.Errorf("%s: %d bytes, %v; want none", c.name, len(got), err)
		}
	}
	ahead[outside.Index].Store(int64(ticket.Life + time.Minute))
	if got, err := bob.getAtSite(node, x, x.chunk, x.readable); !fault.Is(err, fault.Permission) {
		t.Errorf("a ticket of yesterday: %d bytes, %v", len(got), err)
	}
}

// TestShared_BoundsRequests sends requests that no client sends.
func TestShared_BoundsRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.fresh("file")
	whole := &pb.GetRequest_Part{Length: uint32(len(x.body))}
	many := &pb.GetRequest{Slice: 1, Sharing: pb.Sharing_SITE}
	for range 65 {
		many.Addresses = append(many.Addresses, x.chunk[:]...)
		many.Parts = append(many.Parts, whole)
	}
	for _, c := range []struct {
		name string
		role role
		req  *pb.GetRequest
	}{
		{"many chunks", admin, many},
		{"no part", admin, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:], Sharing: pb.Sharing_SITE}},
		{"an empty part", admin, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:], Parts: []*pb.GetRequest_Part{{}}, Sharing: pb.Sharing_SITE}},
		{"a part that leaves its chunk", admin, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:], Parts: []*pb.GetRequest_Part{{Offset: 1, Length: uint32(len(x.body))}}, Sharing: pb.Sharing_SITE}},
		{"a part that leaves every chunk", admin, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:], Parts: []*pb.GetRequest_Part{{Offset: 1 << 31, Length: 1 << 31}}, Sharing: pb.Sharing_SITE}},
		{"half an address", admin, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:16], Parts: []*pb.GetRequest_Part{whole}, Sharing: pb.Sharing_SITE}},
		{"two chunks of a source", peer, &pb.GetRequest{Slice: 1, Addresses: append(x.chunk[:], x.chunk[:]...), Sharing: pb.Sharing_SOURCE}},
		{"no chunk of a source", peer, &pb.GetRequest{Slice: 1, Sharing: pb.Sharing_HELD}},
		{"many nodes to avoid", peer, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:], Avoid: make([]string, 65), Sharing: pb.Sharing_SOURCE}},
	} {
		if err := w.askers[c.role].ask(wire.Chunk, method.Get, c.req, &pb.GetResponse{}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want invalid", c.name, err)
		}
	}
	if err := w.askers[peer].ask(wire.Chunk, method.Get, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:], Sharing: 99}, &pb.GetResponse{}); !fault.Is(err, fault.NotSupported) {
		t.Errorf("a way of the future: %v", err)
	}
}

// TestShared_MemberNamesWhoHasAChunk has two nodes ask a member for one chunk, each
// from another site.
func TestShared_MemberNamesWhoHasAChunk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := bytes.Repeat([]byte("a chunk of some size "), 1000)
	a := chunk.Sum(body)
	member := w.c.Nodes[1] // the node of the role peer stands at site a
	if _, err := w.askers[admin].call(member.ID(), wire.Chunk, method.Put, &pb.PutRequest{Slice: 1, Addresses: a[:], Sizes: []uint32{uint32(len(body))}}, body, &pb.PutResponse{}); err != nil {
		t.Fatal(err)
	}
	first := string(w.c.Nodes[0].ID())
	if err := fetchAs(w, w.c.Nodes[0], member.ID(), a); err != nil {
		t.Fatal(err)
	}
	var answer pb.GetResponse
	req := &pb.GetRequest{Slice: 1, Addresses: a[:], Sharing: pb.Sharing_SOURCE}
	b, err := w.askers[peer].call(member.ID(), wire.Chunk, method.Get, req, nil, &answer)
	if err != nil || len(b.Bytes()) != 0 || len(answer.Holders) != 1 || !slices.Equal(answer.Holders[0].Nodes, []string{first}) {
		t.Fatalf("%d bytes, %v, %v; want the node that was given the chunk", len(b.Bytes()), answer.Holders, err)
	}
	req.Avoid = []string{first}
	answer.Reset()
	b, err = w.askers[peer].call(member.ID(), wire.Chunk, method.Get, req, nil, &answer)
	if err != nil || !bytes.Equal(b.Bytes(), body) {
		t.Errorf("to a node that cannot use that one: %d bytes, %v", len(b.Bytes()), err)
	}
	b.Release()
}

// fetchAs has one node of the cluster ask another one for a chunk, for its site.
func fetchAs(w *world, from *servertest.Node, at ids.Node, a chunk.Address) error {
	b, err := from.Server().Host().Call(w.ctx, string(at), wire.Chunk, method.Get,
		&pb.GetRequest{Slice: 1, Addresses: a[:], Sharing: pb.Sharing_SOURCE}, nil, &pb.GetResponse{})
	if err == nil && len(b.Bytes()) == 0 {
		err = fault.E(fault.Missing, "", "", "nothing came")
	}
	b.Release()
	return err
}
