package simulation

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
)

// configuration is geo-config's process: it may be away, late, and its answers
// may be lost behind what they did.
type configuration struct {
	store *inmem.Store
	// note tells of a change that must not be.
	note func(kind, format string, args ...any)

	mu   sync.Mutex // guards below, the lines, and the seats' chance
	away int        // so many faults keep it away
	lost float64    // share of answers that are lost
}

// line is the way of one machine to the configuration.
type line struct {
	cuts int // so many faults keep the machine from it
}

// seat is the configuration as one node reaches it.
type seat struct {
	c      *configuration
	line   *line
	chance *rand.Rand
	over   <-chan struct{} // closed when the node's life ends
}

var _ geoconfig.Store = (*seat)(nil)

// pass waits as long as a message takes, and tells whether it gets through.
func (s *seat) pass(ctx context.Context, answer bool) error {
	s.c.mu.Lock()
	gone := s.c.away > 0 || s.line.cuts > 0 || answer && s.c.lost > 0 && s.chance.Float64() < s.c.lost
	wait := time.Duration(1_000_000 + s.chance.IntN(30_000_000))
	s.c.mu.Unlock()
	if gone {
		wait = time.Second
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return fault.Wrap(fault.TimedOut, "simulation.seat", "geo-config", ctx.Err())
	case <-s.over:
		return fault.E(fault.Closed, "simulation.seat", "geo-config", "the node ended")
	}
	if gone {
		return fault.E(fault.Unreachable, "simulation.seat", "geo-config", "it does not answer")
	}
	return nil
}

// asked sends a question, has it answered, and brings the answer back.
func asked[T any](ctx context.Context, s *seat, f func() (T, error)) (T, error) {
	var none T
	if err := s.pass(ctx, false); err != nil {
		return none, err
	}
	out, err := f()
	if lost := s.pass(ctx, true); lost != nil {
		return none, lost
	}
	return out, err
}

// Read implements geoconfig.Store.
func (s *seat) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	return asked(ctx, s, func() (geoconfig.Rows, error) { return s.c.store.Read(ctx, q) })
}

// Apply implements geoconfig.Store.
func (s *seat) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	return asked(ctx, s, func() (ids.Revision, error) {
		before := s.c.before(b.Slices)
		rev, err := s.c.store.Apply(context.WithoutCancel(ctx), b)
		if err == nil {
			s.c.checkLeaving(before, b.Slices)
		}
		return rev, err
	})
}

// before reads the rows that are to change.
func (c *configuration) before(swaps []geoconfig.SliceSwap) []geoconfig.SliceRow {
	var list []ids.Slice
	for _, s := range swaps {
		list = append(list, s.Row.ID)
	}
	rows, err := c.store.Read(context.Background(), geoconfig.Query{SliceIDs: list})
	if err != nil {
		return nil // it is in memory: its context does not end
	}
	return rows.Slices
}

// checkLeaving checks that a normal member is made to leave only where as many
// normal ones stay as the policy asks for. One that failed is another matter: it
// stays in the row.
func (c *configuration) checkLeaving(before []geoconfig.SliceRow, swaps []geoconfig.SliceSwap) {
	for _, swap := range swaps {
		for i := range before {
			old := &before[i]
			if old.ID != swap.Row.ID || old.Epoch != swap.From {
				continue
			}
			for _, m := range old.Members {
				if _, stays := swap.Row.Member(m.Node); m.State == geoconfig.Normal && !stays && len(swap.Row.Normals()) < swap.Row.Policy.Level {
					c.note("LEAVING", "slice %d: the normal member %s was taken out of %+v, and %+v is left", old.ID, m.Node, *old, swap.Row)
				}
			}
		}
	}
}

// settled is what Settle answers.
type settled struct {
	revision ids.Revision
	applied  bool
}

// Settle implements geoconfig.Store.
func (s *seat) Settle(ctx context.Context, key string) (ids.Revision, bool, error) {
	out, err := asked(ctx, s, func() (settled, error) {
		r, ok, err := s.c.store.Settle(context.WithoutCancel(ctx), key)
		return settled{r, ok}, err
	})
	return out.revision, out.applied, err
}

// Follow implements geoconfig.Store.
func (s *seat) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	return asked(ctx, s, func() (geoconfig.Rows, error) { return s.c.store.Follow(ctx, since, limit) })
}

// Properties implements geoconfig.Store.
func (s *seat) Properties(ctx context.Context) (geoconfig.Properties, error) {
	return asked(ctx, s, func() (geoconfig.Properties, error) { return s.c.store.Properties(ctx) })
}

// Close implements geoconfig.Store.
func (*seat) Close() error { return nil }

// rows lists the slices as geo-config has them.
func (c *configuration) rows() []geoconfig.SliceRow {
	rows, err := c.store.Read(context.Background(), geoconfig.Query{Slices: 1000})
	if err != nil {
		return nil // it is in memory: its context does not end
	}
	return rows.Slices
}

// spare reports whether every slice goes on without a node: as many other
// members are normal as its level demands, and one at least.
func (c *configuration) spare(node ids.Node) bool {
	for _, row := range c.rows() {
		others := 0
		for _, id := range row.Normals() {
			if id != node {
				others++
			}
		}
		if others == 0 || others < 2 && row.Policy.Level >= 3 {
			return false
		}
	}
	return true
}
