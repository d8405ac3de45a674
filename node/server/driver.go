package server

import (
	"context"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/advisory"
	"cartwheel.dev/node/server/leadership"
	"cartwheel.dev/node/server/leases"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/rowcas"
	"cartwheel.dev/node/server/snapshot"
	"cartwheel.dev/node/store/meta"
)

// driver implements operate.Helpers: it does the work of the loop that may block.
// The loop calls its methods on its own goroutine; they start others. All fields
// are set before the loop runs, and do not change.
type driver struct {
	life     *lifetime
	loop     *operate.Loop
	meta     *meta.DB
	swaps    *rowcas.Runner
	fetcher  *snapshot.Fetcher
	receiver *snapshot.Receiver
	sessions *leases.Sessions
	locks    *advisory.Server
	leader   *leadership.Leader
	doubtAll func()      // has all packs looked at for chunks that nothing needs
	fail     func(error) // ends the node
}

// Swap implements operate.Helpers.
func (d *driver) Swap(sw replica.Swap) { d.swaps.Run(d.life.ctx, sw) }

// Read implements operate.Helpers. The journal is not read back: a member
// that missed more than is in memory (Config.MissedBytes) gets the state instead.
// replicatest runs half of its seeds without reads to show that this suffices.
func (d *driver) Read(r replica.Read) {
	d.loop.Do(func(core *replica.Node, now replica.Time) { core.ReadDone(now, r, nil) })
}

// Fetch implements operate.Helpers.
func (d *driver) Fetch(slice ids.Slice, serial ids.Serial, epoch ids.Epoch, missing []chunk.Address) {
	d.life.spawn(func(ctx context.Context) {
		if d.fetchEntry(ctx, slice, serial, epoch, missing) == nil {
			d.loop.Held(slice, serial, epoch)
		}
	})
}

// fetchEntry brings an entry's chunks, for as long as the entry is in the log.
func (d *driver) fetchEntry(ctx context.Context, slice ids.Slice, serial ids.Serial, epoch ids.Epoch, missing []chunk.Address) error {
	wanted := func(ctx context.Context) (awaits bool, err error) {
		err = d.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) { awaits = core.Awaits(slice, serial, epoch) })
		return awaits, err
	}
	return d.fetcher.FetchEntry(ctx, slice, missing, wanted)
}

// Transfer implements operate.Helpers.
func (d *driver) Transfer(t replica.Transfer) {
	d.life.spawn(func(ctx context.Context) { d.receiver.Receive(ctx, t) })
}

// Yield implements operate.Helpers: no lease of the slice is left afterwards.
func (d *driver) Yield(slice ids.Slice) {
	d.sessions.RevokeSlice(d.life.ctx, slice, func() {
		d.loop.Do(func(core *replica.Node, now replica.Time) { core.Yield(now, slice, nil) })
	})
}

// Role implements operate.Helpers.
func (d *driver) Role(r replica.Role, led bool) {
	d.locks.FollowRole(&r, led)
	if r.Kind == replica.RoleLeading && !led {
		d.life.spawn(func(ctx context.Context) { d.leader.Begin(ctx, r.Slice) })
	}
}

// Removed implements operate.Helpers: nothing of the slice's state stays. The
// core has forgotten its log; a node that is taken again gets a copy.
func (d *driver) Removed(slice ids.Slice) {
	b := d.meta.NewBatch()
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
		d.fail(err)
		return
	}
	d.doubtAll() // no entry says which chunks the slice used
	d.loop.Reset(slice, replica.EntryID{})
}
