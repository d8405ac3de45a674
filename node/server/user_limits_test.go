package server_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

func TestUserLimits_BoundSessions(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, c *server.Config) { c.MaxUserSessions = 3 }})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	node := c.Nodes[0].ID()
	for i := range 5 {
		if _, err := c.Connect("ann").Session(ctx, node); (err == nil) != (i < 3) || err != nil && !fault.Is(err, fault.Overloaded) {
			t.Errorf("session %d of a user: %v", i, err)
		}
	}
	if _, err := c.Connect("root").Session(ctx, node); err != nil {
		t.Errorf("another user: %v", err)
	}
}

// TestUserLimits_BoundConnections gives each user two connections, which one
// client takes. Another client of the same user is turned away, one of another
// user is not.
func TestUserLimits_BoundConnections(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, c *server.Config) { c.MaxUserConnections = 2 }})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	node := c.Nodes[0].ID()
	if _, err := c.Connect("ann").Session(ctx, node); err != nil {
		t.Fatal(err)
	}
	short, end := context.WithTimeout(ctx, 5*time.Second)
	defer end()
	if _, err := c.Connect("ann").Session(short, node); err == nil {
		t.Error("the user has more connections than configured")
	}
	if _, err := c.Connect("root").Session(ctx, node); err != nil {
		t.Errorf("another user: %v", err)
	}
}

func TestChain_ReachesEachMemberOnce(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b", "c", "d"}, Expected: 4})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	row, err := c.Row(ctx, ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	var members, chain []string
	for _, n := range c.Nodes {
		if _, ok := row.Member(n.ID()); ok {
			members = append(members, string(n.ID()))
		}
		chain = append(chain, string(n.ID()))
	}
	for range 6 {
		chain = append(chain, chain...)
	}
	body := []byte("one chunk")
	address := chunk.Sum(body)
	var answer pb.PutResponse
	_, err = c.Connect("ann").Call(ctx, ids.Node(members[0]), wire.Chunk, method.Put,
		&pb.PutRequest{Slice: 1, Addresses: address[:], Sizes: []uint32{uint32(len(body))}, Chain: chain}, [][]byte{body}, &answer)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, id := range answer.Stored {
		if seen[id] {
			t.Errorf("it went to %s twice", id)
		}
		seen[id] = true
		if _, ok := row.Member(ids.Node(id)); !ok {
			t.Errorf("it went to %s, which is no member", id)
		}
	}
	if len(seen) != len(members) {
		t.Errorf("it is at %d nodes, want the %d members", len(seen), len(members))
	}
}

func TestPlace_CuesThatNoPathGivesMakeNoSlice(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ann := c.Connect("ann")
	for name, cues := range map[string]*pb.Cues{
		"time to coherence": {CoherenceNs: 12345}, "replicas": {RepLevel: 60}, "sites": {RepSites: 60},
	} {
		_, err := ann.Call(ctx, c.Nodes[0].ID(), wire.Operation, method.Place, &pb.PlaceRequest{Parent: uint64(ids.RootObject), Cues: cues}, nil, nil)
		if !fault.Is(err, fault.NotSupported) && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	rows, err := c.Store.Read(ctx, geoconfig.Query{Slices: 100})
	if err != nil || len(rows.Slices) != 1 {
		t.Errorf("there are %d slices, %v; want the root's", len(rows.Slices), err)
	}
}

// putOne puts a chunk of 64 KiB at a node and returns its address.
func putOne(ctx context.Context, cl *servertest.Client, node *servertest.Node, name string) (chunk.Address, error) {
	body := bytes.Repeat(fmt.Appendf(nil, "%-64s", name), 1024)
	a := chunk.Sum(body)
	_, err := cl.Call(ctx, node.ID(), wire.Chunk, method.Put,
		&pb.PutRequest{Slice: 1, Addresses: a[:], Sizes: []uint32{uint32(len(body))}}, [][]byte{body}, &pb.PutResponse{})
	return a, err
}

func TestUserLimits_BoundStagedBytes(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}, Configure: func(_ int, c *server.Config) { c.MaxUserStagedBytes = 1 << 20 }})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	root, ann := c.Connect("root"), c.Connect("ann")
	extents := []*pb.Extent{}
	for n := range 9 {
		var a chunk.Address
		for _, node := range c.Nodes {
			var err error
			if a, err = putOne(ctx, root, node, fmt.Sprint("content ", n)); err != nil {
				t.Fatal(err)
			}
		}
		extents = append(extents, &pb.Extent{Offset: uint64(len(extents)) << 16, Length: 1 << 16, Source: &pb.Extent_Chunk{Chunk: a[:]}, ChunkSize: 1 << 16})
	}
	for i := range c.Nodes {
		storeMore(ctx, t, root, c.Nodes[i], fmt.Sprint("before at ", i, " "), 7)
		if _, err := putOne(ctx, ann, c.Nodes[i], fmt.Sprintf("ann's at %d", i)); err != nil {
			t.Errorf("another user: %v", err)
		}
	}
	file := do(ctx, t, root, 1, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(ids.RootObject), Name: []byte("file"), Mode: tree.TypeRegular | 0o600}}})
	do(ctx, t, root, 1, &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: file.Attr.Object, Extents: extents}}})
	for i, n := range c.Nodes {
		for { // the standby hears a moment later that it is committed
			_, err := putOne(ctx, root, n, fmt.Sprintf("later at %d", i))
			if err == nil {
				break
			}
			if !fault.Is(err, fault.Overloaded) {
				t.Fatalf("after the commit: %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		storeMore(ctx, t, root, n, fmt.Sprint("after at ", i, " "), 8)
	}
}

// storeMore has a client store chunks of 64 KiB until it is refused, and checks how
// many it could.
func storeMore(ctx context.Context, t *testing.T, cl *servertest.Client, node *servertest.Node, label string, want int) {
	t.Helper()
	for n := 0; ; n++ {
		_, err := putOne(ctx, cl, node, fmt.Sprint(label, n))
		if err == nil && n < 100 {
			continue
		}
		if !fault.Is(err, fault.Overloaded) || n != want {
			t.Errorf("the user could store %d chunks more, then: %v; want %d, then overloaded", n, err, want)
		}
		return
	}
}

func TestUserLimits_BoundBytesInFlight(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}, Configure: func(_ int, c *server.Config) { c.MaxUserFlightBytes = 1 << 20 }})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	first, second := c.Nodes[0], c.Nodes[1]
	first.Server().Host().SetFilter(func(peer string, _ wire.Class, m wire.Method) (v wire.Verdict) {
		v.Drop = m == method.Put && peer == string(second.ID())
		return v
	})
	slow, end := context.WithCancel(ctx)
	ann := c.Connect("ann")
	body := make([]byte, 240<<10)
	a := chunk.Sum(body)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer end()
	for range 4 { // each waits for the second node as long as its caller does
		waiting.Go(func() {
			var err error = fault.E(fault.Overloaded, "", "", "")
			for fault.Is(err, fault.Overloaded) { // it met the limit itself
				_, err = ann.Call(slow, first.ID(), wire.Chunk, method.Put,
					&pb.PutRequest{Slice: 1, Addresses: a[:], Sizes: []uint32{uint32(len(body))}, Chain: []string{string(second.ID())}}, [][]byte{body}, &pb.PutResponse{})
			}
			if err == nil {
				t.Error("a node answered for one that it does not reach")
			}
		})
	}
	for n := 0; ; n++ {
		_, err := putOne(ctx, ann, first, fmt.Sprint(n))
		if fault.Is(err, fault.Overloaded) && strings.Contains(err.Error(), "bytes of requests under way") {
			break
		}
		if err != nil || ctx.Err() != nil {
			t.Fatalf("beside nearly 1 MiB under way: %v", err)
		}
	}
	if _, err := putOne(ctx, c.Connect("root"), first, "root's"); err != nil {
		t.Errorf("another user: %v", err)
	}
	end()
	waiting.Wait()
	for {
		_, err := putOne(ctx, ann, first, "after")
		if err == nil {
			break
		}
		if !fault.Is(err, fault.Overloaded) {
			t.Fatalf("with nothing under way: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestUserLimits_BoundProbes(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	measure := func(cl *servertest.Client, probes uint32) error {
		_, err := cl.Call(ctx, c.Nodes[0].ID(), wire.Operation, method.Net, &pb.NetRequest{Probes: probes}, nil, &pb.NetResponse{})
		return err
	}
	ann, bob, root := c.Connect("ann"), c.Connect("bob"), c.Connect("root")
	refused := false
	for n := 0; n < 10_000 && !refused; n++ { // 20 to the one other node, each time
		err := measure(ann, 1_000_000)
		if refused = fault.Is(err, fault.Quota); err != nil && !refused {
			t.Fatal(err)
		}
	}
	if !refused {
		t.Error("ann had 200,000 round trips measured, and no refusal")
	}
	for what, err := range map[string]error{
		"ann, who has nothing measured": measure(ann, 0), "another user": measure(bob, 20), "an administrator": measure(root, 20),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
