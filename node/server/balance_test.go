package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
)

// startFilled runs three nodes on disks of 96 MiB, whose root slice has some content,
// and joins a fourth with a large disk at the site of the root's active. It returns the
// files' names, the active and the fourth node.
func startFilled(ctx context.Context, t *testing.T) (c *servertest.Cluster, names []string, filled, roomy *servertest.Node) {
	t.Helper()
	c = servertest.Start(t, servertest.Options{Log: testing.Verbose(), Configure: func(i int, c *server.Config) {
		c.ReserveBytes, c.CapacityBytes = 1<<20, 96<<20
		if i == 3 {
			c.CapacityBytes = 10 << 30
		}
	}})
	cl := c.Connect("root")
	for i := range 20 {
		name := fmt.Sprintf("before%04d", i)
		made := do(ctx, t, cl, ids.RootSlice, create(name))
		body := make([]byte, 200_000)
		copy(body, name)
		if wrote, err := cl.Operate(ctx, ids.RootSlice, commit(made.Attr.Object, len(body)), body); err != nil || wrote.Kind != 0 {
			t.Fatalf("commit %s: %v %v", name, wrote, err)
		}
		names = append(names, name)
	}
	awaitWhole(ctx, t, c)
	filled = c.Active(ids.RootSlice)
	return c, names, filled, c.Join(string(siteOf(ctx, t, c, filled)))
}

// siteOf is where a node stands.
func siteOf(ctx context.Context, t *testing.T, c *servertest.Cluster, n *servertest.Node) ids.Site {
	t.Helper()
	rows, err := c.Store.Read(ctx, geoconfig.Query{Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows.Nodes {
		if row.ID == n.ID() {
			return row.Site
		}
	}
	t.Fatalf("node %d has no row", n.Index)
	return ""
}

// mark sets the high mark of a node's site a little below what the node uses.
func mark(ctx context.Context, t *testing.T, c *servertest.Cluster, n *servertest.Node) {
	t.Helper()
	s, err := n.Server().Overseer().Status(ctx, n.ID())
	if err != nil {
		t.Fatal(err)
	}
	high := int(100*s.UsedBytes/s.CapacityBytes) - 1
	if _, err := changes.SetBalance(ctx, c.Store, changes.Order{Who: "test", At: time.Unix(1, 0)}, siteOf(ctx, t, c, n),
		changes.BalanceChange{High: new(high), Low: new(high - geoconfig.LeastGap)}); err != nil {
		t.Fatal(err)
	}
}

func TestBalance_ASliceLeavesADiskAboveItsMark(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c, names, filled, roomy := startFilled(ctx, t)
	mark(ctx, t, c, filled)
	cl := c.Connect("root")
	for round := 0; !hasLeft(ctx, t, c, filled); round++ {
		more, _ := makeFiles(ctx, t, cl, fmt.Sprintf("during%03d", round), 2)
		names = append(names, more...)
	}
	row, err := c.Row(ctx, ids.RootSlice)
	if m, _ := row.Member(roomy.ID()); err != nil || m.State != geoconfig.Normal || len(row.Normals()) != row.Policy.Level || row.Active != roomy.ID() {
		t.Errorf("got %+v (%v), want the roomy node to lead in the place of the other one at home", row, err)
	}
	servertest.Await(ctx, t, "the node to see that it gave the slice away", func() error {
		s, err := filled.Server().Overseer().Status(ctx, filled.ID())
		if err != nil || s.Balance == nil || s.Balance.Giving != 0 {
			return fmt.Errorf("it says %+v, %w", s.Balance, err)
		}
		return nil
	})
	filled.Stop()
	checkFiles(ctx, t, c, cl, names)
}

func TestBalance_StaysWhereNoNodeCanTakeIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c, names, filled, roomy := startFilled(ctx, t)
	roomy.Stop()
	before, err := c.Row(ctx, ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	mark(ctx, t, c, filled)
	servertest.Await(ctx, t, "the node to say what would help", func() error {
		s, err := filled.Server().Overseer().Status(ctx, filled.ID())
		if err != nil || s.Balance.Remedy == "" {
			return fmt.Errorf("it says %+v, %w", s.Balance, err)
		}
		return nil
	})
	if row, err := c.Row(ctx, ids.RootSlice); err != nil || fmt.Sprint(row.Members) != fmt.Sprint(before.Members) {
		t.Errorf("got %+v (%v), want the members as they were: no other node at the site", row, err)
	}
	checkFiles(ctx, t, c, c.Connect("root"), names)
}
