package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
)

// turnstile is the log of a node that stops its copies at their beginning until it is
// opened, and notes in which order they were made.
type turnstile struct {
	slog.Handler
	open chan struct{}

	mu    sync.Mutex // guards order
	order []ids.Slice
}

func (h *turnstile) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (h *turnstile) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *turnstile) Handle(_ context.Context, r slog.Record) error {
	switch r.Message {
	case "a slice's state is being copied":
		<-h.open
	case "a slice's state was copied":
		h.mu.Lock()
		defer h.mu.Unlock()
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "slice" {
				h.order = append(h.order, ids.Slice(a.Value.Uint64()))
			}
			return true
		})
	}
	return nil
}

func (h *turnstile) made() []ids.Slice {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.order)
}

// makeSlice writes the row of a slice with these members, the first at home, and puts
// more into it than nodes keep for members that miss it.
func makeSlice(ctx context.Context, t *testing.T, c *servertest.Cluster, id ids.Slice, sites int, members ...int) {
	t.Helper()
	rows, err := c.Store.Read(ctx, geoconfig.Query{Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	row := geoconfig.SliceRow{ID: id, Epoch: 1, Active: c.Nodes[members[0]].ID(), Generation: 1,
		Policy: geoconfig.Policy{Home: "a", Level: len(members), Sites: sites, Kind: geoconfig.Ordinary}}
	for _, i := range members {
		m := geoconfig.Member{Node: c.Nodes[i].ID(), State: geoconfig.Normal}
		for _, n := range rows.Nodes {
			if n.ID == m.Node {
				m.Incarnation = n.Incarnation
			}
		}
		row.Members = append(row.Members, m)
	}
	if _, err := c.Store.Apply(ctx, geoconfig.Batch{Key: fmt.Sprint("make/", id), Slices: []geoconfig.SliceSwap{{Row: row}}}); err != nil {
		t.Fatal(err)
	}
	servertest.Await(ctx, t, fmt.Sprint("slice ", id), func() error {
		if !c.Nodes[members[0]].Server().Serves(id) {
			return fmt.Errorf("it is not led")
		}
		return nil
	})
	cl := c.Connect("root")
	made := do(ctx, t, cl, id, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Mode: tree.TypeRegular | 0o644, Parent: uint64(ids.RootObject)}}})
	body := make([]byte, 5000)
	if r, err := cl.Operate(ctx, id, commit(made.Attr.Object, len(body)), body); err != nil || r.Kind != 0 {
		t.Fatalf("slice %d: %v %v", id, r, err)
	}
}

// TestRepair_SingleCopiesAreMadeWholeFirst loses two of five nodes. Four slices keep two
// copies, three have one left, and one node is there to take all of them. It copies none
// until all wait for it, and then those with one copy first, though they were lost last.
func TestRepair_SingleCopiesAreMadeWholeFirst(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	gate := &turnstile{open: make(chan struct{})}
	opened := sync.OnceFunc(func() { close(gate.open) })
	defer opened()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b", "a", "a", "a"}, Log: testing.Verbose(),
		Configure: func(i int, c *server.Config) { quick(i, c); c.FailedAfter, c.MissedBytes = time.Second, 4096 },
		Depend: func(i int, d *server.Deps) {
			if i == 4 {
				d.Logger = slog.New(gate)
			}
		},
	})
	two, one := []ids.Slice{101, 102, 103, 104}, []ids.Slice{111, 112, 113}
	for i, id := range two {
		makeSlice(ctx, t, c, id, 2, 0, 1, 2+i%2)
	}
	for i, id := range one {
		makeSlice(ctx, t, c, id, 1, 0, 2+i%2)
	}
	spare := c.Nodes[4]
	c.Nodes[2].Kill()
	c.Nodes[3].Kill()
	servertest.Await(ctx, t, "all slices to wait for the node that is left", func() error {
		s, err := spare.Server().Overseer().Status(ctx, spare.ID())
		if err != nil {
			return err
		}
		for _, id := range append(slices.Clone(two), one...) {
			row, err := c.Row(ctx, id)
			if _, in := row.Member(spare.ID()); err != nil || !in {
				return fmt.Errorf("slice %d has the members %v, %w", id, row.Members, err)
			}
			if !slices.ContainsFunc(s.Copies, func(x status.Copy) bool { return x.Slice == id }) {
				return fmt.Errorf("slice %d does not wait: %+v", id, s.Copies)
			}
		}
		return nil
	})
	opened()
	servertest.Await(ctx, t, "all slices to be whole", func() error {
		for _, id := range append(slices.Clone(two), one...) {
			if row, err := c.Row(ctx, id); err != nil || len(row.Normals()) < row.Policy.Level {
				return fmt.Errorf("slice %d has the members %v, %w", id, row.Members, err)
			}
		}
		return nil
	})
	order := gate.made()
	lastOfOne, firstOfTwo := 0, len(order)
	for i, id := range order {
		switch {
		case slices.Contains(one, id):
			lastOfOne = i
		case slices.Contains(two, id):
			firstOfTwo = min(firstOfTwo, i)
		}
	}
	if lastOfOne > firstOfTwo || len(order) < len(one)+len(two) {
		t.Errorf("copied %v, want the slices with one copy (%v) before those with two (%v)", order, one, two)
	}
}
