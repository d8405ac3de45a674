package server_test

import (
	"context"
	"sync/atomic"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// shy is a configuration store that does not answer the first few times that a
// node wants to register.
type shy struct {
	geoconfig.Store
	left *atomic.Int32
}

// Read implements geoconfig.Store.
func (s shy) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if q.Sites && q.Nodes && s.left.Add(-1) >= 0 {
		return geoconfig.Rows{}, fault.E(fault.Unreachable, "shy.Read", "", "it does not answer")
	}
	return s.Store.Read(ctx, q)
}

func TestRegister_WaitsForTheStore(t *testing.T) {
	t.Parallel()
	const times = 3
	var left atomic.Int32
	c := servertest.Start(t, servertest.Options{Depend: func(i int, d *server.Deps) {
		if i == 3 {
			store := d.Store
			d.Store = func(h *wire.Host) (geoconfig.Store, error) {
				s, err := store(h)
				return shy{s, &left}, err
			}
		}
	}})
	left.Store(times)
	n := c.Join("d") // fails the test where it does not start
	if left.Load() >= 0 {
		t.Fatalf("the store refused %d times, want %d", times-left.Load(), times)
	}
	rows, err := c.Store.Read(context.Background(), geoconfig.Query{Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows.Nodes {
		if r.ID == n.ID() {
			return
		}
	}
	t.Errorf("the store has %d nodes, and not the new one", len(rows.Nodes))
}
