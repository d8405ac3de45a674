package collection

import (
	"context"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

const (
	// scanMost bounds the rows of one look for counts of zero.
	scanMost = 2048
	// deadMost bounds the dead manifests that one look passes over.
	deadMost = 1024
	// deadTaken bounds those of one collection.
	deadTaken = 128
	// scanOften and scanSeldom bound how often all rows of a slice are looked at.
	scanOften, scanSeldom = 2 * time.Second, 3 * time.Hour
	// forgetMost bounds the versions that one collection removes.
	forgetMost = 1024
)

// scan is where the searches in a slice are.
type scan struct {
	dead     []byte        // the key behind which that for dead manifests goes on
	walk     time.Duration // when that begins again, by the clock
	behind   chunk.Address
	next     time.Duration // by the clock, when the search for counts of zero begins again
	versions []byte        // the key where that for old versions goes on
	again    time.Duration // when that begins again
}

// RunSlices collects in the slices that the node leads, until ctx ends. Each step is short
// and is followed by a rest.
func (c *Collector) RunSlices(ctx context.Context) {
	for pause(ctx, lookEvery) {
		rows := c.o.Leading()
		c.forget(rows)
		for i := range rows {
			for ctx.Err() == nil {
				began := c.o.Clock()
				if !c.step(ctx, &rows[i]) || !c.rest(ctx, began) {
					break
				}
			}
		}
	}
}

// step does one collection in a slice and reports whether there may be more to do. A
// member that is not normal may need what it missed, so nothing goes meanwhile.
func (c *Collector) step(ctx context.Context, row *geoconfig.SliceRow) bool {
	if len(row.Normals()) < len(row.Members) {
		return false
	}
	horizon := c.horizon(ctx, row)
	if horizon == 0 {
		return false
	}
	keeps, err := tree.Keepable(c.o.Committed(row.ID), horizon, c.seen.Times)
	if err != nil {
		c.o.Logger.Error("what a slice keeps could not be read", logattr.Slice(row.ID), logattr.Err(err))
		return false
	}
	at := past{horizon, keeps}
	if c.begin(ctx, row, at) || c.walkDead(ctx, row, at) || c.scan(ctx, row, at) || c.forgetVersions(ctx, row, at) {
		return true
	}
	c.yield(row)
	return false
}

// past is what collection leaves of the past: all as of the horizon and later, and what the
// kept times need.
type past struct {
	horizon hlc.Time
	keeps   []hlc.Time
}

// begin has a slice note its first list of kept times once there is a snapshot. From then on
// counts say since when they are above zero.
func (c *Collector) begin(ctx context.Context, row *geoconfig.SliceRow, at past) bool {
	if !c.seen.Known || len(c.seen.Times) == 0 {
		return false
	}
	_, ok, err := tree.Kept(c.o.Committed(row.ID))
	return err == nil && !ok && c.propose(ctx, row.ID, &pb.Collect{Horizon: uint64(at.horizon)})
}

// look takes in what snapshots there are. After a change all is searched anew.
func (c *Collector) look() {
	was := c.seen.Times
	if c.seen = c.o.Snapshots(); !slices.Equal(was, c.seen.Times) {
		clear(c.scans)
	}
}

// walkDead goes on in the walks of dead manifests.
func (c *Collector) walkDead(ctx context.Context, row *geoconfig.SliceRow, at past) bool {
	s, now := c.searches(row.ID), c.o.Clock()
	if now < s.walk {
		return false
	}
	keys, kept, last, err := c.dead(row.ID, at, s.dead)
	if err != nil {
		c.o.Logger.Error("dead manifests could not be read", logattr.Slice(row.ID), logattr.Err(err))
		return false
	}
	if len(keys) > 0 {
		return c.propose(ctx, row.ID, &pb.Collect{Horizon: uint64(at.horizon), Dead: keys})
	}
	if kept && last == nil {
		s.walk = now + c.between(row)
	}
	s.dead = last
	return last != nil
}

// dead lists dead manifests behind a key that are to be walked at once, the oldest first.
// Those whose node is not here, or damaged, wait: another active may have it. The nodes are
// in memory then, so that the loop need not read them from the disk. kept says that a
// snapshot needs some; last is where the next look goes on where none is to be walked, nil:
// there are no more.
func (c *Collector) dead(id ids.Slice, at past, behind []byte) (keys [][]byte, kept bool, last []byte, err error) {
	refs, passed := 0, 0
	err = tree.ListDead(c.o.Committed(id), behind, func(d tree.Dead) bool {
		if d.Time > at.horizon {
			last = nil
			return false
		}
		if passed++; passed > deadMost {
			return false
		}
		last = d.Key
		if tree.Keep(at.keeps, d.Since, d.Time) {
			kept = true
			return true
		}
		data, err := c.o.Nodes.Node(d.Root)
		if err != nil {
			return true
		}
		names := 1
		if err := chunk.Refs(data, func(chunk.Address, bool) { names++ }); err != nil {
			return true
		}
		if refs += names; refs > tree.MaxCollected && len(keys) > 0 {
			return false
		}
		keys = append(keys, d.Key)
		return len(keys) < deadTaken
	})
	if passed <= deadMost {
		last = nil
	}
	return keys, kept, last, err
}

// scan goes on in the search for counts of zero.
func (c *Collector) scan(ctx context.Context, row *geoconfig.SliceRow, at past) bool {
	s, now := c.searches(row.ID), c.o.Clock()
	if now < s.next {
		return false
	}
	unused, last, err := tree.Unused(c.o.Committed(row.ID), s.behind, at.horizon, at.keeps, scanMost)
	if err != nil {
		c.o.Logger.Error("counts of references could not be read", logattr.Slice(row.ID), logattr.Err(err))
		return false
	}
	if s.behind = last; last.IsZero() {
		s.next = now + c.between(row)
	}
	if len(unused) == 0 {
		return !last.IsZero()
	}
	return c.propose(ctx, row.ID, &pb.Collect{Horizon: uint64(at.horizon), Unused: chunk.AppendAddresses(nil, unused...)})
}

// searches returns where the searches in a slice are.
func (c *Collector) searches(id ids.Slice) *scan {
	s := c.scans[id]
	if s == nil {
		s = &scan{}
		c.scans[id] = s
	}
	return s
}

// between is how long after a search all rows of a slice are looked at again.
func (c *Collector) between(row *geoconfig.SliceRow) time.Duration {
	return min(max(c.o.Floor(row)/8, scanOften), scanSeldom)
}

// forgetVersions goes on in the search for versions that nothing retains.
func (c *Collector) forgetVersions(ctx context.Context, row *geoconfig.SliceRow, at past) bool {
	s, now := c.searches(row.ID), c.o.Clock()
	if now < s.again || !c.o.Forgets(row) {
		return false
	}
	stale, err := c.o.Meta.FindStale(row.ID, s.versions, operate.RetainedOf(at.horizon, at.keeps), forgetMost)
	if err != nil {
		c.o.Logger.Error("old versions could not be read", logattr.Slice(row.ID), logattr.Err(err))
		return false
	}
	if stale.Rows > 0 && !c.propose(ctx, row.ID, &pb.Collect{Horizon: stale.Horizon, ForgetFrom: stale.From, ForgetTo: stale.To}) {
		return false
	}
	if s.versions = stale.Next; stale.Next == nil {
		s.again = now + c.between(row)
	}
	return stale.Next != nil
}

// propose runs one collection and reports whether it was done.
func (c *Collector) propose(ctx context.Context, id ids.Slice, op *pb.Collect) bool {
	ctx, cancel := context.WithTimeout(ctx, proposeWithin)
	defer cancel()
	op.Kept = c.seen.Known
	for _, at := range c.seen.Times {
		op.Keeps = append(op.Keeps, uint64(at))
	}
	err := c.o.Propose(ctx, id, &pb.Operation{Op: &pb.Operation_Collect{Collect: op}})
	if err != nil && !fault.Is(err, fault.NotActive) {
		c.o.Logger.Debug("a collection was not done: it is tried again", logattr.Slice(id), logattr.Err(err))
	}
	if y := c.yields[id]; err != nil && y != nil && y.short {
		c.searchAnew(id, y) // nothing more is given up before this is done
	}
	return err == nil
}
