package reads

import (
	"context"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/node/api/gather"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/drill"
)

// drillCache has the history of drills as it was read last.
type drillCache struct {
	mu    sync.Mutex // guards the rest
	known []drill.Record
	at    time.Time
}

// ListDrills lists the drills that are over, the newest first. While the store is away, it
// lists what it read before, and says how old that is. Errors: those of the store where
// nothing was read before.
func (s *Reads) ListDrills(ctx context.Context, _ *view.None) (*view.Answer[view.List[view.Drill]], error) {
	c := &s.drills
	c.mu.Lock()
	patience := storePatience
	if c.at.IsZero() {
		patience = gather.Limit
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f := s.Fresh()
	list, err := drill.Read(ctx, s.o.Store)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.known, c.at = list, s.o.Wall()
	case c.at.IsZero():
		return nil, err
	default:
		f.AsOfAt, f.GeoConfig.Reachable = c.at, false
	}
	out := make([]view.Drill, 0, len(c.known))
	for i := range slices.Backward(c.known) {
		out = append(out, view.OfDrill(&c.known[i]))
	}
	return view.ListOf(out, f), nil
}
