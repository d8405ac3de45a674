package server_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/rebuild"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// lateStore is a node's way to geo-config, which can be deaf (no changes come) and
// slow (a swap is made, and its outcome comes once release is closed).
type lateStore struct {
	geoconfig.Store
	deaf, slow atomic.Bool
	swaps      chan struct{} // a word for each swap, made or not, as far as there is room
	release    chan struct{}
}

func (s *lateStore) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	rows, err := s.Store.Follow(ctx, since, limit)
	if s.deaf.Load() {
		return geoconfig.Rows{}, fault.E(fault.Unreachable, "test.Follow", "", "the node is deaf")
	}
	return rows, err
}

func (s *lateStore) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	rev, err := s.Store.Apply(ctx, b)
	if len(b.Slices) > 0 && s.slow.Load() {
		select {
		case s.swaps <- struct{}{}:
		default:
		}
		<-s.release
	}
	return rev, err
}

// TestRebuild_SwapOfALostStoreIsVoid has the active take a silent member out while the
// store is lost: the swap is made, and its outcome comes after the node promised a new
// generation. Then the slice goes on by the rebuilt row, with every file, and the
// silent member catches up.
func TestRebuild_SwapOfALostStoreIsVoid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ways := make([]*lateStore, 3)
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose(), Configure: quick, Depend: func(i int, d *server.Deps) {
		open := d.Store
		d.Store = func(h *wire.Host) (geoconfig.Store, error) {
			s, err := open(h)
			ways[i] = &lateStore{Store: s, swaps: make(chan struct{}, 1), release: make(chan struct{})}
			return ways[i], err
		}
	}})
	awaitWhole(ctx, t, c)
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "before", 5)
	active := c.Active(ids.RootSlice)
	silent, other := c.Nodes[(active.Index+1)%3], c.Nodes[(active.Index+2)%3]
	was, err := c.Row(ctx, ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	ways[active.Index].slow.Store(true)
	ways[active.Index].deaf.Store(true)
	ways[other.Index].deaf.Store(true)
	silent.Kill()
	await := func() {
		t.Helper()
		select {
		case <-ways[active.Index].swaps:
		case <-ctx.Done():
			t.Fatal("the active swaps nothing")
		}
	}
	await() // the store has the row that takes the silent member out
	var copies []rebuild.Copy
	for _, n := range []*servertest.Node{active, other} {
		d := n.Server().Directory()
		if err := d.Promise(2); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, rebuild.Copy{Node: n.ID(), Floor: d.Floor(), Rows: d.Copy()})
	}
	close(ways[active.Index].release)
	await() // it tries again, so it took the first swap for void
	if row, _ := active.Server().Directory().Slice(ids.RootSlice); row.Epoch != was.Epoch {
		t.Errorf("the active goes by epoch %d, want %d", row.Epoch, was.Epoch)
	}

	plan, err := rebuild.New(copies, rebuild.Options{Generation: 2, Who: "test", At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if s := plan.Slices[0]; s.Verdict != rebuild.Reduced || s.Was.Epoch != was.Epoch {
		t.Fatalf("the plan is %+v", s)
	}
	replaceRow(ctx, t, c, plan)
	ways[active.Index].deaf.Store(false)
	ways[other.Index].deaf.Store(false)
	c.AwaitRoot(ctx)
	checkFiles(ctx, t, c, cl, names)
	more, _ := makeFiles(ctx, t, cl, "after", 5)
	silent.Start()
	awaitWhole(ctx, t, c)
	checkFiles(ctx, t, c, cl, append(names, more...))
}

// replaceRow makes the cluster's store one of the plan's generation, with its row.
func replaceRow(ctx context.Context, t *testing.T, c *servertest.Cluster, plan *rebuild.Plan) {
	t.Helper()
	servertest.Await(ctx, t, "the store to take the plan", func() error {
		rows, err := c.Store.Read(ctx, geoconfig.Query{SliceIDs: []ids.Slice{ids.RootSlice}})
		if err != nil {
			return err
		}
		rows.Cluster.Generation = plan.Cluster.Generation
		_, err = c.Store.Apply(ctx, geoconfig.Batch{Key: "rebuilt", Cluster: rows.Cluster,
			Slices: []geoconfig.SliceSwap{{From: rows.Slices[0].Epoch, Row: plan.Slices[0].Row, AcceptLoss: true}}})
		return err
	})
}

// TestRebuild_LossyGoesOnAlone accepts the loss of two of three members. The third one
// acts alone and writes. When the others return, they drop what they have and get the
// slice anew.
func TestRebuild_LossyGoesOnAlone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose(), Configure: quick})
	awaitWhole(ctx, t, c)
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "before", 5)
	active := c.Active(ids.RootSlice)
	left := c.Nodes[(active.Index+1)%3]
	c.Away(true)
	for _, n := range c.Nodes {
		if n != left {
			n.Kill()
		}
	}
	d := left.Server().Directory()
	if err := d.Promise(2); err != nil {
		t.Fatal(err)
	}
	plan, err := rebuild.New([]rebuild.Copy{{Node: left.ID(), Floor: d.Floor(), Rows: d.Copy()}},
		rebuild.Options{Generation: 2, Who: "test", At: time.Now(), Accept: func(ids.Slice) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	if s := plan.Slices[0]; s.Verdict != rebuild.Lossy || s.Row.Active != left.ID() || len(s.Row.Members) != 1 {
		t.Fatalf("the plan is %+v", s)
	}
	replaceRow(ctx, t, c, plan)
	c.Away(false)
	c.AwaitRoot(ctx)
	checkFiles(ctx, t, c, cl, names)
	more, _ := makeFiles(ctx, t, cl, "after", 5)
	for _, n := range c.Nodes {
		if n != left {
			n.Start()
		}
	}
	awaitWhole(ctx, t, c)
	checkFiles(ctx, t, c, cl, append(names, more...))
	for _, n := range c.Nodes {
		servertest.Await(ctx, t, "the copies to be equal", func() error {
			_, want, err := left.Server().CopySum(ids.RootSlice)
			if err != nil {
				return err
			}
			_, got, err := n.Server().CopySum(ids.RootSlice)
			if err == nil && got != want {
				err = fmt.Errorf("node %d has %s, want %s", n.Index, got, want)
			}
			return err
		})
	}
}
