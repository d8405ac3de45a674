package reads

import (
	"context"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/api/view"
)

// storePatience bounds how long a read waits for the store where it can answer without
// it.
const storePatience = 500 * time.Millisecond

// databaseCache has what the store last said of itself.
type databaseCache struct {
	mu    sync.Mutex // guards the rest
	known geoconfig.Properties
	at    time.Time
}

// GetDatabase shows the configuration store, by its last word while it is away.
func (s *Reads) GetDatabase(ctx context.Context, _ *view.None) (*view.Answer[view.Database], error) {
	out := view.Database{Reachable: true, Revision: s.o.Directory.Revision()}
	if away := s.o.Directory.Away(); !away.IsZero() {
		out.Reachable, out.AwaySinceAt = false, &away
	}
	c := &s.database
	if out.Reachable {
		ctx, cancel := context.WithTimeout(ctx, storePatience)
		defer cancel()
		p, err := s.o.Store.Properties(ctx)
		c.mu.Lock()
		if err == nil {
			c.known, c.at = p, s.o.Wall()
		}
		c.mu.Unlock()
		out.Reachable = err == nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() {
		out.Name, out.SinglePoint, out.Durable, out.AsOfAt = c.known.Name, new(c.known.SinglePoint), new(c.known.Durable), new(c.at)
	}
	return &view.Answer[view.Database]{Body: out}, nil
}
