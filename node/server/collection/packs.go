package collection

import (
	"context"
	"log/slog"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/tree"
)

const (
	// reclaimShare is the part of a pack that must be free of what is needed: a byte is
	// copied three times at most for each that comes back. shortShare is the same while
	// the disk is short of space.
	reclaimShare, shortShare = 1.0 / 4, 1.0 / 32
	// againAfter is after how many times of UploadGrace a pack is looked at that nobody
	// doubts: uploads that were never committed are in it, and what was in doubt before
	// a start.
	againAfter = 8
	// moveRate bounds the bytes that are moved in a second.
	moveRate = 48 << 20
)

// RunPacks reclaims the node's packs until ctx ends.
func (c *Collector) RunPacks(ctx context.Context) {
	for pause(ctx, lookEvery) {
		for ctx.Err() == nil {
			began := c.o.Clock()
			more := c.reclaim(ctx)
			c.reclaiming.Store(more)
			if !more || !c.rest(ctx, began) {
				break
			}
		}
	}
}

// reclaim looks at one pack and reports whether to go on with another one at once.
func (c *Collector) reclaim(ctx context.Context) bool {
	share := reclaimShare
	if c.o.Short() {
		share = shortShare
	}
	id, ok := c.o.Packs.Next(share, againAfter*c.o.UploadGrace, c.o.UploadGrace)
	if !ok {
		return false
	}
	done, err := c.o.Packs.Reclaim(ctx, id, pack.Rules{Share: share, Needed: c.needed, Settle: c.o.Meta.Flush, Pace: pace})
	switch {
	case err == nil:
		if done.Freed > 0 {
			c.o.Logger.Debug("a pack was reclaimed", slog.Any("pack", id), slog.Int64("freed", done.Freed), slog.Int64("moved", done.Moved))
		}
		return true
	case fault.Is(err, fault.Again) || fault.Is(err, fault.NoSpace) || ctx.Err() != nil:
	default:
		c.o.Logger.Error("a pack could not be reclaimed", slog.Any("pack", id), logattr.Err(err))
	}
	return false
}

// pace keeps to moveRate.
func pace(ctx context.Context, bytes int) error {
	if !pause(ctx, time.Duration(bytes)*time.Second/moveRate) {
		return fault.Wrap(fault.Canceled, "collection.pace", "", ctx.Err())
	}
	return nil
}

// needed says which chunks something on this node needs: a row of references of any
// slice, or an entry that is in a log and not applied. What an operation looked for
// meanwhile is pinned, which the packs check last. The error is Again where it cannot be
// said now: operations are kept beside the log, or the state of a slice is being copied
// to here.
func (c *Collector) needed(ctx context.Context, addresses []chunk.Address) ([]bool, error) {
	const op fault.Op = "collection.needed"
	if c.o.Aside() {
		return nil, fault.E(fault.Again, op, "", "operations are kept beside the log")
	}
	named, known := map[chunk.Address]bool{}, false
	err := c.o.Loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		known = core.Unapplied(func(e *replica.Entry) { noteNamed(named, e) })
	})
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fault.E(fault.Again, op, "", "a slice's state or log is not whole here")
	}
	slices, err := c.o.Meta.Slices()
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(addresses))
	for i := range addresses {
		out[i] = named[addresses[i]]
	}
	for _, s := range slices {
		for i := range addresses {
			if out[i] {
				continue
			}
			if _, out[i], err = c.o.Meta.Plain(s, tree.RefsKey(addresses[i])); err != nil {
				return nil, err
			}
		}
		if ctx.Err() != nil {
			return nil, fault.Wrap(fault.Canceled, op, "", ctx.Err())
		}
	}
	return out, nil
}

// noteNamed notes the chunks that an entry names.
func noteNamed(named map[chunk.Address]bool, e *replica.Entry) {
	for list := e.Chunks; len(list) >= chunk.AddressSize; list = list[chunk.AddressSize:] {
		named[chunk.Address(list[:chunk.AddressSize])] = true
	}
}
