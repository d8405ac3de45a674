package server_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server"
	snapshots "cartwheel.dev/node/server/named"
	"cartwheel.dev/node/server/servertest"
)

// TestOverseer_OrdersAndCountsAtAllNodes has one node ask itself and another one for what the
// admin API shows of the past.
func TestOverseer_OrdersAndCountsAtAllNodes(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.AwaitRoot(ctx)
	o := c.Nodes[0].Server().Overseer()
	for _, n := range []ids.Node{c.Nodes[0].ID(), c.Nodes[1].ID()} {
		round, err := o.Scrub(ctx, n, 1<<20)
		if err != nil || round == 0 {
			t.Errorf("a scrub of %s: got round %d, %v", n.Short(), round, err)
		}
		if s, err := o.Status(ctx, n); err != nil || s.Scrub == nil || s.Scrub.Round < round || s.Disk == nil {
			t.Errorf("status of %s: got %+v, %v", n.Short(), s, err)
		}
		servertest.Await(ctx, t, "the figures of its copy", func() error { return counted(ctx, o, n) })
	}
	if _, err := o.Space(ctx, c.Nodes[0].ID(), 99, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("a slice that is not there: got %v", err)
	}
	if _, err := o.Past().Make(ctx, snapshots.Snapshot{Name: "kept", By: "ann"}, 0, false); err != nil {
		t.Fatal(err)
	}
	if all, age := o.Past().All(); len(all) != 1 || all[0].Name != "kept" || age < 0 {
		t.Errorf("got %+v, read %v ago", all, age)
	}
}

// counted answers nil where a node tells of the root slice in all its pages.
func counted(ctx context.Context, o *server.Overseer, n ids.Node) error {
	objects, pages := uint64(0), 0
	for next := []byte(nil); pages == 0 || len(next) > 0; pages++ {
		page, err := o.Space(ctx, n, ids.RootSlice, next)
		if err != nil {
			return err
		}
		objects, next = objects+page.Objects, page.Next
	}
	if objects == 0 || pages != 3 { // references, dead manifests and history
		return fault.Errorf(fault.Again, "server_test.counted", string(n), "got %d objects in %d pages", objects, pages)
	}
	return nil
}
