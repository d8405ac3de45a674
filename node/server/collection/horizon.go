package collection

import (
	"context"
	"maps"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
)

// A clock that is ahead must not collect early. What time it is at least is known from
// two things that this machine's wall clock has no part in: the time of the last entry in
// a slice's log when this node began to lead it, and the clocks of other machines, as
// their frames tell. From then on the boot clock counts, which does not jump. If both lag
// behind, versions are retained for longer.

// anchor is a time that was reached at some moment of the boot clock.
type anchor struct {
	time hlc.Time
	at   time.Duration
}

// now is the time that is reached at least.
func (a anchor) now(clock time.Duration) hlc.Time {
	if a.time == 0 {
		return 0
	}
	return hlc.FromWall(a.time.Wall().Add(clock - a.at))
}

// horizons knows the anchors of the slices led here, and that of other machines.
type horizons struct {
	slices map[ids.Slice]anchor
	others anchor
}

func newHorizons() horizons { return horizons{slices: map[ids.Slice]anchor{}} }

// horizon returns the time before which no version of a slice is retained; 0: it is not
// known yet.
func (c *Collector) horizon(ctx context.Context, row *geoconfig.SliceRow) hlc.Time {
	c.look()
	h, now := &c.horizons, c.o.Clock()
	if vouched := c.o.Vouched(); vouched > h.others.now(now) {
		h.others = anchor{vouched, now}
	}
	own, ok := h.slices[row.ID]
	if !ok {
		err := c.o.Loop.Ask(ctx, func(core *replica.Node, _ replica.Time) { own.time = core.AppliedTime(row.ID) })
		if err != nil {
			return 0
		}
		own.at = now
		h.slices[row.ID] = own
	}
	at := h.reached(row.ID, now, c.o.HLC.Now())
	return min(c.yielded(row, at, before(at, c.o.Floor(row))), c.unheard(at, now))
}

// unheard is the time up to which this node knows all snapshots, where at is the time that
// is reached; 0: there is none. Of what came to be behind it a snapshot may be that this node
// has not heard of. While geo-config is away it stands still.
func (c *Collector) unheard(at hlc.Time, now time.Duration) hlc.Time {
	if c.seen.Heard == 0 {
		return 0
	}
	return before(at, now-c.seen.Heard+Margin(c.o.Lease))
}

// reached is the time that is reached at least in a slice led here, by the boot clock; it is
// not behind ours, that of this machine's clock.
func (h *horizons) reached(id ids.Slice, now time.Duration, ours hlc.Time) hlc.Time {
	return min(max(h.slices[id].now(now), h.others.now(now)), ours)
}

// forget drops what is known of slices that are not led here any more.
func (c *Collector) forget(rows []geoconfig.SliceRow) {
	led := func(id ids.Slice) bool {
		return slices.ContainsFunc(rows, func(r geoconfig.SliceRow) bool { return r.ID == id })
	}
	maps.DeleteFunc(c.horizons.slices, func(id ids.Slice, _ anchor) bool { return !led(id) })
	maps.DeleteFunc(c.yields, func(id ids.Slice, _ *yielding) bool { return !led(id) })
	maps.DeleteFunc(c.scans, func(id ids.Slice, _ *scan) bool { return !led(id) })
}
