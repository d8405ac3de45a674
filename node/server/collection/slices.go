package collection

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
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
	dead, err := c.dead(row.ID, horizon)
	if err == nil && len(dead) > 0 {
		return c.propose(ctx, row.ID, &pb.Collect{Horizon: uint64(horizon), Dead: dead})
	}
	if err != nil {
		c.o.Logger.Error("dead manifests could not be read", logattr.Slice(row.ID), logattr.Err(err))
		return false
	}
	if c.scan(ctx, row, horizon) || c.forgetVersions(ctx, row, horizon) {
		return true
	}
	c.yield(row)
	return false
}

// dead lists dead manifests to be walked at once, the oldest first. Those whose node is
// not here, or damaged, wait: another active may have it. The nodes are in memory then,
// so that the loop need not read them from the disk.
func (c *Collector) dead(id ids.Slice, horizon hlc.Time) (keys [][]byte, err error) {
	refs, passed := 0, 0
	err = tree.ListDead(c.o.Committed(id), func(d tree.Dead) bool {
		if passed++; d.Time > horizon || passed > deadMost {
			return false
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
	return keys, err
}

// scan goes on in the search for counts of zero.
func (c *Collector) scan(ctx context.Context, row *geoconfig.SliceRow, horizon hlc.Time) bool {
	s, now := c.searches(row.ID), c.o.Clock()
	if now < s.next {
		return false
	}
	unused, last, err := tree.Unused(c.o.Committed(row.ID), s.behind, horizon, scanMost)
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
	return c.propose(ctx, row.ID, &pb.Collect{Horizon: uint64(horizon), Unused: chunk.AppendAddresses(nil, unused...)})
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
func (c *Collector) forgetVersions(ctx context.Context, row *geoconfig.SliceRow, horizon hlc.Time) bool {
	s, now := c.searches(row.ID), c.o.Clock()
	if now < s.again || !c.o.Forgets(row) {
		return false
	}
	stale, err := c.o.Meta.FindStale(row.ID, s.versions, uint64(horizon), forgetMost)
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
	err := c.o.Propose(ctx, id, &pb.Operation{Op: &pb.Operation_Collect{Collect: op}})
	if err != nil && !fault.Is(err, fault.NotActive) {
		c.o.Logger.Debug("a collection was not done: it is tried again", logattr.Slice(id), logattr.Err(err))
	}
	if y := c.yields[id]; err != nil && y != nil && y.short {
		c.searchAnew(id, y) // nothing more is given up before this is done
	}
	return err == nil
}
