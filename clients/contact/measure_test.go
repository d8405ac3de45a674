package contact

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// TestSample_HearsAllDimensionsOfNodesThatKnowThem connects to nodes of this
// program, and to ones that say that they are older.
func TestSample_HearsAllDimensionsOfNodesThatKnowThem(t *testing.T) {
	for _, level := range []int{version.WideCoordinates, version.Draining} {
		t.Run(fmt.Sprintf("level %d", level), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			c := servertest.Start(t, servertest.Options{Depend: func(_ int, d *server.Deps) { d.Feature = level }})
			n := c.Nodes[0]
			cl := introduced(ctx, t, c, n)
			heard := func() error {
				n.Server().Host().SetCoordinate(wire.Coordinate{Vector: [8]float32{1, 2, 3, 4, 5, 6, 7, 8}, Height: 1, Error: 0.1, Dimensions: 8})
				if _, err := cl.host.Ping(ctx, string(n.ID())); err != nil {
					return err
				}
				for _, l := range cl.near.Links() {
					if l.Node == n.ID() && l.Known && l.At.Dimensions() == 8 {
						return nil
					}
				}
				return fmt.Errorf("got %+v", cl.near.Links())
			}
			if level == version.WideCoordinates {
				servertest.Await(ctx, t, "a coordinate of eight dimensions", heard)
				return
			}
			for range 20 {
				if heard() == nil {
					t.Fatal("a coordinate of eight dimensions was sent, which ends an older program's connections")
				}
			}
		})
	}
}

// introduced returns a client that said hello to a node.
func introduced(ctx context.Context, t *testing.T, c *servertest.Cluster, n *servertest.Node) *Cluster {
	t.Helper()
	encoded, err := c.Users["root"].Marshal()
	if err != nil {
		t.Fatal(err)
	}
	f := File{Cluster: servertest.ClusterID, UserKey: filepath.Join(t.TempDir(), "user.key"), Nodes: []string{n.Address() + "/p2p/" + string(n.ID())}}
	if err := os.WriteFile(f.UserKey, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	cl, err := New(Options{File: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := cl.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	return cl
}
