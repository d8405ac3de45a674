package server

import (
	"context"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
)

// helpers does for the loop what may wait; it is operate.Helpers. Its methods
// run on the loop's goroutine and start others.
type helpers struct{ s *Server }

// Swap implements operate.Helpers.
func (h helpers) Swap(sw replica.Swap) { h.s.swaps.Run(h.s.life.ctx, sw) }

// Read implements operate.Helpers. The journal is not read back: whoever
// missed more than is in memory (Config.MissedBytes) gets the state instead.
// replicatest runs half of its seeds without reads to show that this suffices.
func (h helpers) Read(r replica.Read) {
	h.s.loop.Do(func(core *replica.Node, now replica.Time) { core.ReadDone(now, r, nil) })
}

// Fetch implements operate.Helpers.
func (h helpers) Fetch(slice ids.Slice, serial ids.Serial, epoch ids.Epoch, missing []chunk.Address) {
	h.s.life.spawn(func(ctx context.Context) {
		if h.s.fetchEntry(ctx, slice, serial, epoch, missing) == nil {
			h.s.loop.Held(slice, serial, epoch)
		}
	})
}

// fetchEntry brings an entry's chunks, for as long as the entry is in the log.
func (s *Server) fetchEntry(ctx context.Context, slice ids.Slice, serial ids.Serial, epoch ids.Epoch, missing []chunk.Address) error {
	wanted := func(ctx context.Context) (awaits bool, err error) {
		err = s.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) { awaits = core.Awaits(slice, serial, epoch) })
		return awaits, err
	}
	return s.fetcher.FetchEntry(ctx, slice, missing, wanted)
}

// Transfer implements operate.Helpers.
func (h helpers) Transfer(t replica.Transfer) {
	h.s.life.spawn(func(ctx context.Context) { h.s.receiver.Receive(ctx, t) })
}

// Yield implements operate.Helpers: no lease of the slice is left afterwards.
func (h helpers) Yield(slice ids.Slice) {
	h.s.sessions.RevokeSlice(h.s.life.ctx, slice, func() {
		h.s.loop.Do(func(core *replica.Node, now replica.Time) { core.Yield(now, slice, nil) })
	})
}

// Role implements operate.Helpers.
func (h helpers) Role(r replica.Role, led bool) {
	h.s.locks.FollowRole(&r, led)
	if r.Kind == replica.RoleLeading && !led {
		h.s.life.spawn(func(ctx context.Context) { h.s.lead(ctx, r.Slice) })
	}
}

// Removed implements operate.Helpers: nothing of the slice's state stays. The
// core has forgotten its log; a node that is taken again gets a copy.
func (h helpers) Removed(slice ids.Slice) {
	b := h.s.store.Meta().NewBatch()
	err := b.DropSlice(slice)
	if err == nil && plant.On(plant.RemovalDropsOther) {
		err = b.DropSlice(slice%3 + 1)
	}
	if err == nil {
		err = b.Commit()
	} else {
		b.Abandon()
	}
	if err != nil {
		h.s.fail(err)
		return
	}
	h.s.loop.Reset(slice, replica.EntryID{})
}
