package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"go.uber.org/goleak"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/server/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// away is a store that can be made to fail. It tells each call of Follow.
type away struct {
	geoconfig.Store
	mu       sync.Mutex // guards the rest
	err      error
	followed chan<- struct{} // nil: no test counts them
}

func (a *away) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *away) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *away) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if err := a.failure(); err != nil {
		return geoconfig.Rows{}, err
	}
	return a.Store.Read(ctx, q)
}

func (a *away) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	if a.followed != nil {
		select {
		case a.followed <- struct{}{}:
		case <-ctx.Done():
		}
	}
	if err := a.failure(); err != nil {
		return geoconfig.Rows{}, err
	}
	return a.Store.Follow(ctx, since, limit)
}

// bench is a store with a cluster, and helpers that change it.
type bench struct {
	*testing.T
	store *inmem.Store
	keys  int
}

// newBench makes a store of cluster c1 at revision 1: sites paris and oslo,
// nodes n1 and n2 at paris and n3 at oslo, and user ann with key k1.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, store: inmem.New()}
	t.Cleanup(func() { b.store.Close() })
	b.apply(geoconfig.Batch{
		Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1},
		Sites:   []geoconfig.Site{{Name: "paris"}, {Name: "oslo"}},
		Nodes:   []geoconfig.Node{{ID: "n3", Site: "oslo"}, {ID: "n1", Site: "paris"}, {ID: "n2", Site: "paris"}},
		Users:   []geoconfig.User{user("ann", "k1")},
	})
	return b
}

func user(name ids.User, key string) geoconfig.User {
	return geoconfig.User{Name: name, Key: key, UID: 1000, GIDs: []uint32{100}}
}

// row returns a slice's row with the members n1 (active) and n2.
func row(id ids.Slice, epoch ids.Epoch) geoconfig.SliceRow {
	return geoconfig.SliceRow{
		ID: id, Epoch: epoch, Active: "n1", Policy: geoconfig.Policy{Home: "paris", Level: 2, Kind: geoconfig.Ordinary},
		Members: []geoconfig.Member{{Node: "n1", State: geoconfig.Normal}, {Node: "n2", State: geoconfig.Normal}},
	}
}

// made is a batch that makes slices.
func made(list ...ids.Slice) geoconfig.Batch {
	var b geoconfig.Batch
	for _, id := range list {
		b.Slices = append(b.Slices, geoconfig.SliceSwap{Row: row(id, 1)})
	}
	return b
}

// moved is a batch that takes a slice from an epoch to the next.
func moved(id ids.Slice, from ids.Epoch) geoconfig.Batch {
	return geoconfig.Batch{Slices: []geoconfig.SliceSwap{{From: from, Row: row(id, from+1)}}}
}

func (b *bench) apply(batch geoconfig.Batch) ids.Revision {
	b.Helper()
	b.keys++
	batch.Key = fmt.Sprint("key-", b.keys)
	rev, err := b.store.Apply(b.Context(), batch)
	if err != nil {
		b.Fatalf("changing the store: %v", err)
	}
	return rev
}

// open makes a directory that follows the store, with a change of its options.
func (b *bench) open(change func(*cluster.Options)) *cluster.Directory {
	b.Helper()
	return open(b.T, func(o *cluster.Options) {
		o.Store = b.store
		if change != nil {
			change(o)
		}
	})
}

func open(t *testing.T, change func(*cluster.Options)) *cluster.Directory {
	t.Helper()
	o := cluster.Options{Logger: slog.New(slog.DiscardHandler)}
	change(&o)
	d, err := cluster.New(o)
	if err != nil {
		t.Fatalf("making a directory: %v", err)
	}
	return d
}

func refresh(t *testing.T, d *cluster.Directory) {
	t.Helper()
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatalf("refreshing: %v", err)
	}
}

// follow runs a directory until the test ends.
func follow(t *testing.T, d *cluster.Directory) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { d.Run(ctx) })
	stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(stop)
	return stop
}
