package server_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

// stranger makes a host with a key that nobody knows, whose frames carry a clock
// far ahead.
func stranger(t *testing.T, c *servertest.Cluster, clock uint64) *wire.Host {
	t.Helper()
	key, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := wire.New(wire.Options{Key: key, HLC: func() uint64 { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // the nodes may be gone
	for _, n := range c.Nodes {
		if err := h.AddPeer(string(n.ID()), []string{n.Address()}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// removeRow deletes a row of the roster.
func removeRow(ctx context.Context, t *testing.T, c *servertest.Cluster, key geoconfig.RowKey, revision ids.Revision) {
	t.Helper()
	b := geoconfig.Batch{Key: "remove/" + key.String(), Remove: []geoconfig.Removal{{Key: key, Revision: revision}}}
	if _, err := c.Store.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
}

func TestRoster_ClocksOfStrangersAndUsersFillNoLog(t *testing.T) {
	var log lines
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Depend: func(_ int, d *server.Deps) {
		d.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const far = uint64(1) << 62
	node := string(c.Nodes[0].ID())
	h := stranger(t, c, far)
	for range 100 {
		if _, err := h.Call(ctx, node, wire.Operation, method.Status, &pb.StatusRequest{}, nil, nil); !fault.Is(err, fault.Unauthorized) {
			t.Fatalf("a stranger's call: got %v, want unauthorized", err)
		}
	}
	if n := log.count("clock is ahead"); n != 0 {
		t.Errorf("a stranger's clock took %d lines of the log", n)
	}
	user := c.Users["ann"]
	signature, err := user.Sign(method.HelloProof(h.KeyID(), node))
	if err != nil {
		t.Fatal(err)
	}
	hello := &pb.HelloRequest{UserKey: user.Public(), Signature: signature, Version: method.ProtocolVersion}
	if _, err := h.Call(ctx, node, wire.Operation, method.Hello, hello, nil, nil); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := h.Call(ctx, node, wire.Operation, method.Statfs, &pb.StatfsRequest{}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := log.count("clock is ahead"); n != 1 {
		t.Errorf("a user's clock took %d lines of the log, want 1", n)
	}
}

func TestRoster_StrangerIsUnauthorizedEverywhere(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	h := stranger(t, c, 0)
	asked := 0
	for m := wire.Method(1); m < wire.MaxMethod; m++ {
		if m == method.Hello || method.Name(m) == fmt.Sprintf("method %d", m) && m < wire.MaxMethod-2 {
			continue // hello fails for a reason of its own; the last two are wire's
		}
		if asked++; asked%50 == 0 { // more would be too much on one connection
			h = stranger(t, c, 0)
		}
		_, err := h.Call(ctx, string(c.Nodes[0].ID()), wire.Operation, m, nil, nil, nil)
		if !fault.Is(err, fault.Unauthorized) {
			t.Errorf("method %d (%s): got %v, want unauthorized", m, method.Name(m), err)
		}
	}
	if asked < 15 {
		t.Errorf("only %d methods are there", asked)
	}
}

func TestRoster_RemovedUserIsCut(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ann, other := c.Connect("ann"), c.Connect("root")
	for _, n := range c.Nodes {
		for _, cl := range []*servertest.Client{ann, other} {
			if _, err := cl.Call(ctx, n.ID(), wire.Operation, method.Statfs, &pb.StatfsRequest{}, nil, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := cl.Session(ctx, n.ID()); err != nil { // a connection for beacons too
				t.Fatal(err)
			}
		}
	}
	rows, err := c.Store.Read(ctx, geoconfig.Query{Users: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range rows.Users {
		if u.Name == "ann" {
			removeRow(ctx, t, c, u.RowKey(), u.Revision)
		}
	}
	limit, end := context.WithTimeout(ctx, 5*time.Second)
	defer end()
	for _, n := range c.Nodes {
		servertest.Await(limit, t, "the removed user's connections to be cut", func() error {
			for _, s := range n.Server().Host().Status() {
				if s.Peer == ann.Host.KeyID() {
					return fmt.Errorf("%s is open", s.Class)
				}
			}
			return nil
		})
		if _, err := ann.Call(ctx, n.ID(), wire.Operation, method.Statfs, &pb.StatfsRequest{}, nil, nil); err == nil {
			t.Error("the removed user is served")
		}
		if !other.Host.Connected(string(n.ID()), wire.Operation) {
			t.Error("another user was cut too")
		}
	}
}

func TestRoster_ChangedUserActsAsTheNewOne(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	root, node := c.Connect("root"), c.Nodes[0].ID()
	order := func() error {
		_, err := root.Call(ctx, node, wire.Operation, method.DropCaches, &pb.DropCachesRequest{}, nil, nil)
		return err
	}
	if err := order(); err != nil {
		t.Fatal(err)
	}
	rows, err := c.Store.Read(ctx, geoconfig.Query{Users: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range rows.Users {
		if u.Name == "root" {
			u.Admin = false
			if _, err := c.Store.Apply(ctx, geoconfig.Batch{Key: "demote", Users: []geoconfig.User{u}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	servertest.Await(ctx, t, "the user to be no admin", func() error {
		if err := order(); !fault.Is(err, fault.Permission) {
			return fmt.Errorf("the order: %w", err)
		}
		return nil
	})
}

func TestRoster_RemovedNodeIsCut(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b", "c", "d"}, Expected: 4})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	row, err := c.Row(ctx, ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	var gone *servertest.Node
	for _, n := range c.Nodes {
		if _, member := row.Member(n.ID()); !member {
			gone = n
		}
	}
	if gone == nil {
		t.Fatal("every node is a member of the root's slice")
	}
	rows, err := c.Store.Read(ctx, geoconfig.Query{Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range rows.Nodes {
		if n.ID == gone.ID() {
			removeRow(ctx, t, c, n.Key(), n.Revision)
		}
	}
	gone.Kill() // or it would write its row again: the store of this test lets it
	again, err := wire.New(wire.Options{Key: gone.Key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() }) // the nodes may be gone
	for _, n := range c.Nodes {
		if n == gone {
			continue
		}
		if err := again.AddPeer(string(n.ID()), []string{n.Address()}); err != nil {
			t.Fatal(err)
		}
		servertest.Await(ctx, t, "the former node to be a stranger", func() error {
			_, err := again.Call(ctx, string(n.ID()), wire.Operation, method.Facts, &pb.FactsRequest{}, nil, nil)
			if !fault.Is(err, fault.Unauthorized) {
				return fmt.Errorf("a call that only nodes may make: %w", err)
			}
			return nil
		})
	}
}

func TestAdmin_OrdersAreInTheAuditLog(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ann, root := c.Connect("ann"), c.Connect("root")
	node := c.Active(ids.RootSlice).ID()
	if _, err := ann.Call(ctx, node, wire.Operation, method.Status, &pb.StatusRequest{}, nil, nil); err != nil {
		t.Errorf("a user's status: %v", err)
	}
	order := func(cl *servertest.Client) (drop, handOver error) {
		_, drop = cl.Call(ctx, node, wire.Operation, method.DropCaches, &pb.DropCachesRequest{}, nil, nil)
		_, handOver = cl.Call(ctx, node, wire.Operation, method.HandOver, &pb.HandOverRequest{Slice: uint32(ids.RootSlice)}, nil, nil)
		return drop, handOver
	}
	if drop, handOver := order(ann); !fault.Is(drop, fault.Permission) || !fault.Is(handOver, fault.Permission) {
		t.Errorf("a user's orders: got %v and %v, want permission", drop, handOver)
	}
	if drop, handOver := order(root); drop != nil || handOver != nil {
		t.Errorf("an admin's orders: got %v and %v", drop, handOver)
	}
	rows, err := c.Store.Read(ctx, geoconfig.Query{Audit: 100})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, a := range rows.Audit {
		if a.Who == "root" || a.Who == "ann" {
			found[a.Who+" "+a.Action+" "+a.Subject]++
		}
	}
	if len(found) != 2 || found["root node.drop-caches nodes/"+string(node)] != 1 || found["root slice.hand-over slices/1"] != 1 {
		t.Errorf("the audit log has %v", found)
	}
}
