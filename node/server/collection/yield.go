package collection

import (
	"log/slog"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/logattr"
)

// While the disk of a slice's member is short of space, retention yields: the horizon moves
// on in steps, so that the oldest versions go first. A step comes only once everything
// before it was collected, and this node's packs were emptied of it. The horizon travels in
// the collections, so that all members forget the same.

const (
	// yieldSteps is in how many steps retention yields wholly.
	yieldSteps = 16
	// yieldShare, yieldLeast and yieldMost say how long a step is given to free space, also
	// at other members: a share of the retention, within bounds.
	yieldShare            = 2880
	yieldLeast, yieldMost = time.Second, 30 * time.Second
	// lateShare is the part of the least retention after which another step is worth while
	// where all else is given up.
	lateShare = 4
)

// yielding is how far the retention of a slice has yielded.
type yielding struct {
	// horizon is the latest time before which versions were given up.
	horizon hlc.Time
	// short says that the disk of a member was short of space at the last look, and since
	// is when that or the last step began.
	short bool
	since time.Duration
}

// Least is for how long versions of a slice are retained even where space is short.
func (t Terms) Least(row *geoconfig.SliceRow) time.Duration {
	t.Retention = min(t.Retention, t.RetentionLeast)
	return t.Floor(row)
}

// yielded returns the horizon of a slice at a time that was reached, where normal is the
// one by its terms. A slice that is short of space from now on is searched anew.
func (c *Collector) yielded(row *geoconfig.SliceRow, at, normal hlc.Time) hlc.Time {
	y := c.yields[row.ID]
	if !c.o.ShortFor(row.ID) {
		if y != nil && y.short {
			y.short = false
			c.o.Logger.Info("retention is as configured again: there is room", logattr.Slice(row.ID))
		}
		return normal
	}
	if y == nil {
		y = &yielding{}
		c.yields[row.ID] = y
	}
	y.horizon = max(y.horizon, normal)
	if !y.short {
		y.short = true
		c.searchAnew(row.ID, y)
	}
	return min(y.horizon, before(at, c.o.Least(row)))
}

// searchAnew begins the searches in a slice again.
func (c *Collector) searchAnew(id ids.Slice, y *yielding) {
	y.since = c.o.Clock()
	s := c.searches(id)
	s.next, s.again, s.walk = 0, 0, 0
}

// yield moves the horizon of a slice one step on, where space is short and all before it
// was collected.
func (c *Collector) yield(row *geoconfig.SliceRow) {
	y, s, now := c.yields[row.ID], c.searches(row.ID), c.o.Clock()
	span := c.o.Floor(row) - c.o.Least(row)
	switch {
	case y == nil || !y.short || span <= 0:
		return
	case now >= s.next || now >= s.again && c.o.Forgets(row) || c.reclaiming.Load() || c.o.Aside():
		return // something may be there to collect, or nothing can go
	case now-y.since < min(max(span/yieldShare, yieldLeast), yieldMost):
		return
	}
	step, from := span/yieldSteps, y.horizon.Wall()
	latest := before(c.horizons.reached(row.ID, now, c.o.HLC.Now()), c.o.Least(row)).Wall()
	next := from.Add(step)
	if next.After(latest) {
		next = latest
		// All is given up but what has become old since: a search for little would be
		// repeated for as long as the disk is full.
		if next.Sub(from) < min(step, c.o.Least(row)/lateShare) {
			return
		}
	}
	y.horizon = hlc.FromWall(next)
	c.searchAnew(row.ID, y)
	c.o.Logger.Warn("retention yields: a disk of the slice's members is short of space", logattr.Slice(row.ID), slog.Time("kept_from", next))
}

// before is a time some while before another; 0: there is none.
func before(at hlc.Time, d time.Duration) hlc.Time {
	if at.Wall().UnixNano() <= int64(d) {
		return 0
	}
	return hlc.FromWall(at.Wall().Add(-d))
}
