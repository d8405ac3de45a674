package server

import (
	"context"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/replica"
)

// helpers does for the loop what may wait; it is operate.Helpers. Its methods
// run on the loop's goroutine and start others.
type helpers struct{ s *Server }

// Swap implements operate.Helpers.
func (h helpers) Swap(sw replica.Swap) { h.s.swaps.Run(h.s.ctx, sw) }

// Read implements operate.Helpers. The journal is not read back: whoever
// missed more than is in memory (Config.MissedBytes) gets the state instead.
// replicatest runs half of its seeds without reads to show that this suffices.
func (h helpers) Read(r replica.Read) {
	h.s.loop.Do(func(core *replica.Node, now replica.Time) { core.ReadDone(now, r, nil) })
}

// Fetch implements operate.Helpers.
func (h helpers) Fetch(slice geoconfig.SliceID, serial geoconfig.Serial, epoch geoconfig.Epoch, missing []chunk.Address) {
	h.s.goRun(func(ctx context.Context) {
		f := fetch{s: h.s, slice: slice, gate: h.s.asked, got: &fetched{}}
		if f.run(ctx, missing) == nil {
			h.s.loop.Held(slice, serial, epoch)
		}
	})
}

// Transfer implements operate.Helpers.
func (h helpers) Transfer(t replica.Transfer) {
	h.s.goRun(func(ctx context.Context) { h.s.takeTransfer(ctx, t) })
}

// Yield implements operate.Helpers: no lease of the slice is left afterwards.
func (h helpers) Yield(slice geoconfig.SliceID) {
	h.s.sessions.RevokeSlice(h.s.ctx, slice, func() {
		h.s.loop.Do(func(core *replica.Node, now replica.Time) { core.Yield(now, slice, nil) })
	})
}

// Role implements operate.Helpers.
func (h helpers) Role(r replica.Role, led bool) {
	h.s.lockRole(&r, led)
	if r.Kind == replica.RoleLeading && !led {
		h.s.goRun(func(ctx context.Context) { h.s.lead(ctx, r.Slice) })
	}
}

// Removed implements operate.Helpers.
func (h helpers) Removed(slice geoconfig.SliceID) {
	b := h.s.store.Meta().NewBatch()
	err := b.DropSlice(slice)
	if err == nil {
		err = b.Commit()
	} else {
		b.Abandon()
	}
	if err != nil {
		h.s.fail(err)
	}
}
