package server

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// driver implements operate.Helpers: it does the work of the loop that may block.
// The loop calls its methods on its own goroutine; they start others.
type driver struct{ s *Server }

// Swap implements operate.Helpers.
func (d driver) Swap(sw replica.Swap) { d.s.swaps.Run(d.s.life.ctx, sw) }

// Read implements operate.Helpers. The journal is not read back: a member
// that missed more than is in memory (Config.MissedBytes) gets the state instead.
// replicatest runs half of its seeds without reads to show that this suffices.
func (d driver) Read(r replica.Read) {
	d.s.loop.Do(func(core *replica.Node, now replica.Time) { core.ReadDone(now, r, nil) })
}

// Fetch implements operate.Helpers.
func (d driver) Fetch(slice ids.Slice, serial ids.Serial, epoch ids.Epoch, missing []chunk.Address) {
	d.s.life.spawn(func(ctx context.Context) {
		if d.s.fetchEntry(ctx, slice, serial, epoch, missing) == nil {
			d.s.loop.Held(slice, serial, epoch)
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
func (d driver) Transfer(t replica.Transfer) {
	d.s.life.spawn(func(ctx context.Context) { d.s.receiver.Receive(ctx, t) })
}

// Yield implements operate.Helpers: no lease of the slice is left afterwards.
func (d driver) Yield(slice ids.Slice) {
	d.s.sessions.RevokeSlice(d.s.life.ctx, slice, func() {
		d.s.loop.Do(func(core *replica.Node, now replica.Time) { core.Yield(now, slice, nil) })
	})
}

// Role implements operate.Helpers.
func (d driver) Role(r replica.Role, led bool) {
	d.s.locks.FollowRole(&r, led)
	if r.Kind == replica.RoleLeading && !led {
		d.s.life.spawn(func(ctx context.Context) { d.s.lead(ctx, r.Slice) })
	}
}

// Removed implements operate.Helpers: nothing of the slice's state stays. The
// core has forgotten its log; a node that is taken again gets a copy.
func (d driver) Removed(slice ids.Slice) {
	b := d.s.store.Meta().NewBatch()
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
		d.s.fail(err)
		return
	}
	d.s.loop.Reset(slice, replica.EntryID{})
}

// lead is what a new active does first: it formats a slice that is empty, and
// later lets go of open files whose clients do not come back.
func (s *Server) lead(ctx context.Context, id ids.Slice) {
	if err := s.format(ctx, id); err != nil && ctx.Err() == nil {
		s.log.Error("a new slice could not be prepared", "slice", uint32(id), "error", err)
		return
	}
	s.intents.Resume(id)
	select {
	case <-ctx.Done():
		return
	case <-time.After(s.config.Session + s.config.Lease):
	}
	s.holds.ReleaseAbsent(ctx, id)
}

// format gives an empty slice its first entry.
func (s *Server) format(ctx context.Context, id ids.Slice) error {
	state, err := tree.ReadState(s.committed(id))
	if err != nil || state.Next != 0 {
		return err
	}
	done := make(chan error, 1)
	s.loop.Format(id, s.deps.Wall().UnixNano(), func(err error) { done <- err })
	select {
	case err := <-done:
		if fault.Is(err, fault.NotActive) {
			return nil // whoever acts now does it
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sessionEnded drops what a client had under a session: its locks, and its open
// files where it has no other session here.
func (s *Server) sessionEnded(client, session uint64) {
	s.locks.EndSession(client, session)
	if s.sessions.Live(client) {
		return
	}
	s.life.spawn(func(ctx context.Context) {
		for _, row := range s.leading() {
			s.holds.Release(ctx, row.ID, client)
		}
	})
}

// committed is what this node's own copy of a slice shows.
func (s *Server) committed(id ids.Slice) tree.View { return operate.Committed(s.store.Meta(), id) }
