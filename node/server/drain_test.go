package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

// setDraining writes into a node's row whether it is drained.
func setDraining(ctx context.Context, t *testing.T, c *servertest.Cluster, n *servertest.Node, on bool) {
	t.Helper()
	servertest.Await(ctx, t, "the node's row to be written", func() error {
		rows, err := c.Store.Read(ctx, geoconfig.Query{Nodes: true})
		if err != nil {
			return err
		}
		for _, row := range rows.Nodes {
			if row.ID == n.ID() {
				row.Draining = on
				_, err = c.Store.Apply(ctx, geoconfig.Batch{Key: fmt.Sprint("drain/", row.Revision), Nodes: []geoconfig.Node{row}})
			}
		}
		return err
	})
}

// hasLeft reports whether a node is no member of the root slice, and fails where
// the slice has fewer normal members than its policy asks for.
func hasLeft(ctx context.Context, t *testing.T, c *servertest.Cluster, n *servertest.Node) bool {
	t.Helper()
	row, err := c.Row(ctx, ids.RootSlice)
	if err != nil || len(row.Normals()) < row.Policy.Level {
		t.Fatalf("got %+v (%v) while the node is drained, want %d normal members always", row, err, row.Policy.Level)
	}
	_, in := row.Member(n.ID())
	return !in
}

func TestDrain_LeavesTheActiveWhileItIsWritten(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "before", 20)
	awaitWhole(ctx, t, c)
	fourth := c.Join("oslo")
	drained := c.Active(ids.RootSlice)
	setDraining(ctx, t, c, drained, true)
	for round := 0; !hasLeft(ctx, t, c, drained); round++ {
		more, _ := makeFiles(ctx, t, cl, fmt.Sprintf("during%03d", round), 5)
		names = append(names, more...)
	}
	drained.Stop()
	row, err := c.Row(ctx, ids.RootSlice)
	if m, _ := row.Member(fourth.ID()); err != nil || m.State != geoconfig.Normal || len(row.Normals()) != row.Policy.Level {
		t.Errorf("got %+v (%v), want the fourth node in the place of the drained one", row, err)
	}
	checkFiles(ctx, t, c, cl, names)
	drained.Start()
	setDraining(ctx, t, c, drained, false)
	servertest.Await(ctx, t, "the slice to be home", func() error {
		if now := c.Active(ids.RootSlice); now != drained {
			return fmt.Errorf("node %d is the active", now.Index)
		}
		return nil
	})
	checkFiles(ctx, t, c, cl, names)
}

func TestDrain_WaitsWhereNoOtherNodeIs(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl := c.Connect("root")
	makeFiles(ctx, t, cl, "before", 3)
	awaitWhole(ctx, t, c)
	drained := c.Active(ids.RootSlice)
	setDraining(ctx, t, c, drained, true)
	servertest.Await(ctx, t, "another active", func() error {
		if c.Active(ids.RootSlice) == drained {
			return fmt.Errorf("node %d is still the active", drained.Index)
		}
		return nil
	})
	makeFiles(ctx, t, cl, "after", 3)
	if row, err := c.Row(ctx, ids.RootSlice); err != nil || len(row.Normals()) != row.Policy.Level {
		t.Errorf("got %+v (%v), want the drained node to stay, as none can take its place", row, err)
	}
}
