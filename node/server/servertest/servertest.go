// Package servertest runs a whole cluster in one process for tests: nodes with
// real disks in temporary directories, real connections over loopback, and a
// configuration store in memory. A cluster is a value; the test's cleanup ends
// it. It is for tests only. A Cluster may be used from any goroutine, except
// that stopping and starting one node is for one goroutine at a time.
package servertest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/wire"
)

// Options change what Start makes; the zero value is three nodes, one at each
// of the sites a, b and c.
type Options struct {
	// Sites has one name for each node.
	Sites []string
	// Expected is how many nodes must be there before the root slice is made;
	// 0: all.
	Expected int
	// Configure changes a node's configuration before it starts.
	Configure func(i int, c *server.Config)
	// Depend changes what a node is given before it starts.
	Depend func(i int, d *server.Deps)
	// Log prints the nodes' logs to the test's.
	Log bool
}

// Cluster is a running cluster.
type Cluster struct {
	t     testing.TB
	o     Options
	Store *inmem.Store
	away  atomic.Bool
	// Users has a key that acts as any user (a trusted host) under "root", and
	// one that acts as uid 1000 under "ann".
	Users map[string]wire.Key
	Nodes []*Node
}

// Node is one node of a cluster, running or stopped.
type Node struct {
	c      *Cluster
	Index  int
	Key    wire.Key
	Dir    string
	listen string
	mu     sync.Mutex     // guards below
	server *server.Server // nil: stopped
}

// ClusterID names every test cluster.
const ClusterID geoconfig.ClusterID = "test"

// Start runs a cluster and waits until its root is there.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	if len(o.Sites) == 0 {
		o.Sites = []string{"a", "b", "c"}
	}
	if o.Expected == 0 {
		o.Expected = len(o.Sites)
	}
	c := &Cluster{t: t, o: o, Store: inmem.New(), Users: map[string]wire.Key{"root": newKey(t), "ann": newKey(t)}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := c.Store.Apply(ctx, geoconfig.Batch{Key: "cluster", Cluster: &geoconfig.Cluster{ID: ClusterID, Generation: 1},
		Users: []geoconfig.User{
			{Name: "root", Key: c.Users["root"].KeyID(), TrustedHost: true},
			{Name: "ann", Key: c.Users["ann"].KeyID(), UID: 1000, GIDs: []uint32{1000}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.Sites {
		c.Nodes = append(c.Nodes, &Node{c: c, Index: i, Key: newKey(t), Dir: t.TempDir(), listen: "/ip4/127.0.0.1/tcp/0"})
	}
	t.Cleanup(func() {
		for _, n := range c.Nodes {
			n.Stop()
		}
	})
	for _, n := range c.Nodes {
		n.Start()
	}
	c.AwaitRoot(ctx)
	return c
}

func newKey(t testing.TB) wire.Key {
	t.Helper()
	k, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// far is the cluster's store as a node reaches it: it may be away, and closing
// it is left to the cluster.
type far struct{ c *Cluster }

func (f far) check() error {
	if f.c.away.Load() {
		return fault.E(fault.Unreachable, "servertest.far", "geo-config", "it is away")
	}
	return nil
}

// Read implements geoconfig.Store.
func (f far) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if err := f.check(); err != nil {
		return geoconfig.Rows{}, err
	}
	return f.c.Store.Read(ctx, q)
}

// Apply implements geoconfig.Store.
func (f far) Apply(ctx context.Context, b geoconfig.Batch) (geoconfig.Revision, error) {
	if err := f.check(); err != nil {
		return 0, err
	}
	return f.c.Store.Apply(ctx, b)
}

// Settle implements geoconfig.Store.
func (f far) Settle(ctx context.Context, key string) (geoconfig.Revision, bool, error) {
	if err := f.check(); err != nil {
		return 0, false, err
	}
	return f.c.Store.Settle(ctx, key)
}

// Follow implements geoconfig.Store.
func (f far) Follow(ctx context.Context, since geoconfig.Revision, limit int) (geoconfig.Rows, error) {
	if err := f.check(); err != nil {
		return geoconfig.Rows{}, err
	}
	rows, err := f.c.Store.Follow(ctx, since, limit)
	if gone := f.check(); gone != nil {
		return geoconfig.Rows{}, gone
	}
	return rows, err
}

// Properties implements geoconfig.Store.
func (f far) Properties(ctx context.Context) (geoconfig.Properties, error) {
	if err := f.check(); err != nil {
		return geoconfig.Properties{}, err
	}
	return f.c.Store.Properties(ctx)
}

// Close implements geoconfig.Store.
func (far) Close() error { return nil }

// Away makes the configuration store unreachable for the nodes, or brings it
// back.
func (c *Cluster) Away(away bool) { c.away.Store(away) }

// Start starts a stopped node, on the address that it had.
func (n *Node) Start() {
	n.c.t.Helper()
	c := server.DefaultConfig()
	c.Data, c.Site, c.Listen, c.ExpectedNodes = n.Dir, n.c.o.Sites[n.Index], []string{n.listen}, n.c.o.Expected
	if n.c.o.Configure != nil {
		n.c.o.Configure(n.Index, &c)
	}
	var logger *slog.Logger
	if n.c.o.Log {
		logger = slog.New(slog.NewTextHandler(testWriter{n.c.t}, &slog.HandlerOptions{Level: slog.LevelDebug})).With("index", n.Index)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	d := server.Deps{
		Key: n.Key, Store: func(*wire.Host) (geoconfig.Store, error) { return far{n.c}, nil },
		Version: "test", Logger: logger, Random: rand.New(rand.NewPCG(uint64(n.Index), uint64(time.Now().UnixNano()))),
	}
	if n.c.o.Depend != nil {
		n.c.o.Depend(n.Index, &d)
	}
	s, err := server.Open(ctx, c, d)
	if err != nil {
		n.c.t.Fatalf("node %d: %v", n.Index, err)
	}
	n.listen = s.Addresses()[0]
	n.mu.Lock()
	n.server = s
	n.mu.Unlock()
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(p))
	return len(p), nil
}

// Stop stops a node as SIGTERM does; a stopped one stays so.
func (n *Node) Stop() { n.end((*server.Server).Close) }

// Kill stops a node without a word to anybody, as a crash of its process does.
func (n *Node) Kill() { n.end((*server.Server).Abort) }

func (n *Node) end(how func(*server.Server) error) {
	n.mu.Lock()
	s := n.server
	n.server = nil
	n.mu.Unlock()
	if s == nil {
		return
	}
	if err := how(s); err != nil {
		n.c.t.Errorf("node %d: closing: %v", n.Index, err)
	}
}

// Server returns the running server, nil while it is stopped.
func (n *Node) Server() *server.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// ID names the node.
func (n *Node) ID() geoconfig.NodeID { return geoconfig.NodeID(n.Key.KeyID()) }

// Address is where the node listens.
func (n *Node) Address() string { return n.listen }

// Row reads a slice's row from the configuration.
func (c *Cluster) Row(ctx context.Context, id geoconfig.SliceID) (geoconfig.SliceRow, error) {
	rows, err := c.Store.Read(ctx, geoconfig.Query{SliceIDs: []geoconfig.SliceID{id}})
	if err != nil || len(rows.Slices) != 1 {
		return geoconfig.SliceRow{}, fmt.Errorf("slice %d: %d rows, %w", id, len(rows.Slices), err)
	}
	return rows.Slices[0], nil
}

// Active returns the node that the row names as a slice's active.
func (c *Cluster) Active(id geoconfig.SliceID) *Node {
	c.t.Helper()
	row, err := c.Row(context.Background(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, n := range c.Nodes {
		if n.ID() == row.Active {
			return n
		}
	}
	c.t.Fatalf("slice %d: its active %s is no node of this cluster", id, row.Active)
	return nil
}

// AwaitRoot waits until the root directory can be read at its active.
func (c *Cluster) AwaitRoot(ctx context.Context) {
	c.t.Helper()
	Await(ctx, c.t, "the root directory", func() error {
		row, err := c.Row(ctx, geoconfig.RootSlice)
		if err != nil {
			return err
		}
		for _, n := range c.Nodes {
			if s := n.Server(); s != nil && n.ID() == row.Active {
				return s.CheckRoot()
			}
		}
		return fmt.Errorf("the active is stopped")
	})
}

// Await polls until check returns nil, and fails the test with its last error
// when ctx ends.
func Await(ctx context.Context, t testing.TB, what string, check func() error) {
	t.Helper()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
