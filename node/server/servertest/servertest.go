// Package servertest runs a whole cluster in one process for tests: nodes with
// disks in memory that know what was synced, real connections over loopback, and
// a configuration store in memory. A cluster is a value; the test's cleanup ends
// it. It is for tests only. A Cluster may be used from any goroutine, except
// that stopping and starting one node is for one goroutine at a time, and that
// nothing else uses a cluster while a node joins it.
package servertest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
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
	// Rootless has Start not wait for the root. Where Expected is more than Sites
	// has, nobody makes it before Join.
	Rootless bool
	// Configure changes a node's configuration before it starts.
	Configure func(i int, c *server.Config)
	// Depend changes what a node is given before it starts.
	Depend func(i int, d *server.Deps)
	// Log prints the nodes' logs to the test's.
	Log bool
	// Folders has the nodes keep their data in temporary directories, for tests
	// of a real disk and for benchmarks. Kill then loses nothing that was
	// written.
	Folders bool
}

// Cluster is a running cluster.
type Cluster struct {
	t     testing.TB
	o     Options
	Store *inmem.Store
	away  atomic.Bool
	// Users has a key that acts as any user (a trusted host) under "root", and
	// those that act as uids 1000 and 1001 under "ann" and "bob".
	// The key under "host" is a trusted host's, but no administrator's.
	Users map[string]wire.Key
	Nodes []*Node
}

// ClusterID names every test cluster.
const ClusterID ids.Cluster = "test"

// startLimit is for how long a node or a cluster may take to start: on a crowded
// machine leases of seconds lapse until it gets its turn.
const startLimit = 2 * time.Minute

// Start runs a cluster and waits until its root is there, unless it is to be
// without one.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	if len(o.Sites) == 0 {
		o.Sites = []string{"a", "b", "c"}
	}
	if o.Expected == 0 {
		o.Expected = len(o.Sites)
	}
	c := &Cluster{t: t, o: o, Store: inmem.New(), Users: map[string]wire.Key{"root": newKey(t), "ann": newKey(t), "bob": newKey(t), "host": newKey(t)}}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	_, err := c.Store.Apply(ctx, geoconfig.Batch{Key: "cluster", Cluster: &geoconfig.Cluster{ID: ClusterID, Generation: 1},
		Users: []geoconfig.User{
			{Name: "root", Key: c.Users["root"].KeyID(), TrustedHost: true, Admin: true},
			{Name: "ann", Key: c.Users["ann"].KeyID(), UID: 1000, GIDs: []uint32{1000}},
			{Name: "bob", Key: c.Users["bob"].KeyID(), UID: 1001, GIDs: []uint32{1001}},
			{Name: "host", Key: c.Users["host"].KeyID(), TrustedHost: true},
		}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.Sites {
		c.add(i)
	}
	t.Cleanup(func() {
		for _, n := range c.Nodes {
			n.Stop()
		}
	})
	for _, n := range c.Nodes {
		n.Start()
	}
	if !o.Rootless {
		c.AwaitRoot(ctx)
	}
	return c
}

// add makes a node that does not run yet.
func (c *Cluster) add(index int) *Node {
	n := &Node{c: c, Index: index, Key: newKey(c.t), Dir: c.t.TempDir(), listen: freeAddress(c.t)}
	if !c.o.Folders {
		n.disk = newStorage()
	}
	c.Nodes = append(c.Nodes, n)
	return n
}

func newKey(t testing.TB) wire.Key {
	t.Helper()
	k, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Away makes the configuration store unreachable for the nodes, or brings it
// back.
func (c *Cluster) Away(away bool) { c.away.Store(away) }

// Join starts one more node, at a site of its own or of others.
func (c *Cluster) Join(site string) *Node {
	c.t.Helper()
	c.o.Sites = append(slices.Clone(c.o.Sites), site)
	n := c.add(len(c.Nodes))
	n.Start()
	return n
}

// Row reads a slice's row from the configuration.
func (c *Cluster) Row(ctx context.Context, id ids.Slice) (geoconfig.SliceRow, error) {
	rows, err := c.Store.Read(ctx, geoconfig.Query{SliceIDs: []ids.Slice{id}})
	if err != nil || len(rows.Slices) != 1 {
		return geoconfig.SliceRow{}, fmt.Errorf("slice %d: %d rows, %w", id, len(rows.Slices), err)
	}
	return rows.Slices[0], nil
}

// Active returns the node that the row names as a slice's active.
func (c *Cluster) Active(id ids.Slice) *Node {
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
		row, err := c.Row(ctx, ids.RootSlice)
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

// awaitLimit is for how long Await polls at most: what has not come by then does not.
const awaitLimit = 3 * time.Minute

// Await polls until check returns nil, and fails the test with its last error
// when ctx ends, or after awaitLimit.
func Await(ctx context.Context, t testing.TB, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
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
