package servertest

import (
	"context"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// far is the cluster's store as one life of a node reaches it: it may be away,
// and closing it is left to the cluster. A killed node changes nothing any more.
type far struct {
	c    *Cluster
	mu   sync.RWMutex // guards gone; held across changes
	gone bool
}

// leave waits for changes that have begun, and refuses those that come.
func (f *far) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
}

func (f *far) check() error {
	if f.c.away.Load() {
		return fault.E(fault.Unreachable, "servertest.far", "geo-config", "it is away")
	}
	return nil
}

// Read implements geoconfig.Store.
func (f *far) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if err := f.check(); err != nil {
		return geoconfig.Rows{}, err
	}
	return f.c.Store.Read(ctx, q)
}

// Apply implements geoconfig.Store.
func (f *far) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.gone {
		return 0, fault.E(fault.Closed, "servertest.far", "geo-config", "the node was killed")
	}
	if err := f.check(); err != nil {
		return 0, err
	}
	return f.c.Store.Apply(ctx, b)
}

// Settle implements geoconfig.Store.
func (f *far) Settle(ctx context.Context, key string) (ids.Revision, bool, error) {
	if err := f.check(); err != nil {
		return 0, false, err
	}
	return f.c.Store.Settle(ctx, key)
}

// Follow implements geoconfig.Store.
func (f *far) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
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
func (f *far) Properties(ctx context.Context) (geoconfig.Properties, error) {
	if err := f.check(); err != nil {
		return geoconfig.Properties{}, err
	}
	return f.c.Store.Properties(ctx)
}

// Close implements geoconfig.Store.
func (*far) Close() error { return nil }
