// Package diskspace says how much a node can still store, and whether its disk or
// that of a standby is full. It watches; it refuses nothing itself: the loop
// and the chunk server ask it. A Gauge is safe for concurrent use.
package diskspace

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/store"
)

// lookEvery is how often a node looks at its disk's space: what comes in
// between two looks must fit the reserve.
const lookEvery = 50 * time.Millisecond

// Disk is what the gauge asks of the node's store.
type Disk interface {
	// Usage returns the space taken and left.
	Usage() store.Usage
	// Free returns how much is free for new content, where the system says it.
	Free(store.Usage) (free int64, known bool)
	// Prepare makes what a full disk must not lack.
	Prepare() error
}

// Options are what a Gauge is made of.
type Options struct {
	Self ids.Node
	Disk Disk
	// CapacityBytes bounds what the node stores. 0: what the disk has.
	CapacityBytes int64
	// ReserveBytes of the disk stay free.
	ReserveBytes int64
	// Leading lists the rows of the slices that this node acts for.
	Leading func() []geoconfig.SliceRow
	// Node returns a node's row.
	Node func(ids.Node) (geoconfig.Node, bool)
	// Changed is called when the disk became full, or has room again. It must
	// not wait.
	Changed func()
	Logger  *slog.Logger
}

// Gauge owns what is known of the free space. Run alone writes it; everything
// else reads and takes no lock.
type Gauge struct {
	o    Options
	full atomic.Bool
	// slices are those of which a member's disk is full; nil before the first look.
	slices atomic.Pointer[map[ids.Slice]bool]
}

// New returns a gauge that takes the disk to have room until Run looks.
func New(o Options) *Gauge { return &Gauge{o: o} }

// Run looks after the disk's space until ctx ends. It waits for nothing else: a
// checkpoint may take long.
func (g *Gauge) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := g.o.Disk.Prepare(); err != nil && !fault.Is(err, fault.NoSpace) {
			g.o.Logger.Error("what a full disk needs could not be made ready", logattr.Err(err))
		}
		g.look()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// IsFull reports whether this node's disk has no room for more content.
func (g *Gauge) IsFull() bool { return g.full.Load() }

// IsFullFor reports whether a slice takes no more content: this node's disk or
// a standby's is full.
func (g *Gauge) IsFullFor(id ids.Slice) bool {
	if g.full.Load() {
		return true
	}
	slices := g.slices.Load()
	return slices != nil && (*slices)[id]
}

// Free returns how many bytes this node can still store, by its disk and its
// configuration; negative: more than it should is stored.
func (g *Gauge) Free(u store.Usage) int64 {
	free, known := g.o.Disk.Free(u)
	if g.o.CapacityBytes > 0 {
		left := g.o.CapacityBytes - u.Journal - u.Chunks - u.Meta
		if known {
			left = min(left, free)
		}
		return left
	}
	return free
}

// Capacity is how many bytes this node may store in all.
func (g *Gauge) Capacity(u store.Usage) int64 {
	if g.o.CapacityBytes > 0 {
		return g.o.CapacityBytes
	}
	return u.Disk.Total
}

// look notes whether the disk has room for more. A full disk has room again
// once there is an eighth more than the reserve.
func (g *Gauge) look() {
	u := g.o.Disk.Usage()
	if u.Disk.Total == 0 && g.o.CapacityBytes == 0 {
		return // the system does not say
	}
	free, was, limit := g.Free(u), g.full.Load(), g.o.ReserveBytes
	if was {
		limit += limit / 8
	}
	if full := free < limit; full != was {
		g.full.Store(full)
		if full {
			g.o.Logger.Error("the disk is full: writes are refused, reading goes on", slog.Int64("free_bytes", free), slog.Int64("reserve_bytes", g.o.ReserveBytes))
		} else {
			g.o.Logger.Info("the disk has room again", slog.Int64("free_bytes", free))
		}
		g.o.Changed()
	}
	g.lookAtMembers()
}

// lookAtMembers notes the slices of which a member's disk is full, as its row
// says.
func (g *Gauge) lookAtMembers() {
	full := map[ids.Slice]bool{}
	for _, row := range g.o.Leading() {
		for _, id := range row.Normals() {
			if n, ok := g.o.Node(id); ok && id != g.o.Self && n.CapacityBytes > 0 && n.CapacityBytes-n.UsedBytes < g.o.ReserveBytes {
				full[row.ID] = true
			}
		}
	}
	g.slices.Store(&full)
}
