// Package collection gives back the space of what no retained version needs: docs/design.md,
// section 5. In each slice that the node leads it proposes collections (tree.Collect), and
// it reclaims the packs of this node, whichever slices have chunks in them. It orders
// nothing and holds no lock: what it finds is checked again by those who act on it. A
// Collector may be made by any goroutine; RunSlices and RunPacks own its parts.
package collection

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/tree"
)

const (
	// lookEvery is how often the node looks for what to collect.
	lookEvery = 500 * time.Millisecond
	// proposeWithin bounds one collection of a slice.
	proposeWithin = 10 * time.Second
	// leases is for how many leases a version is retained at least: by then a member
	// that lacks the entries of that time is not normal any more.
	leases = 4
)

// Loop is what a Collector asks of the node's loop.
type Loop interface {
	// Ask runs a function between two turns of the loop, and waits for it.
	Ask(context.Context, func(*replica.Node, replica.Time)) error
}

// Packs are the node's packs; *pack.Packs are.
type Packs interface {
	Next(share float64, age, soon time.Duration) (uint32, bool)
	Reclaim(ctx context.Context, id uint32, rules pack.Rules) (pack.Reclaimed, error)
}

// Options are what a Collector is made of. Every field is needed.
type Options struct {
	Self  ids.Node
	Loop  Loop
	Packs Packs
	Meta  *meta.DB
	// Nodes reads manifests' nodes.
	Nodes chunk.Reader
	// Leading lists the rows of the slices that this node acts for.
	Leading func() []geoconfig.SliceRow
	// Committed is what this node's own copy of a slice shows.
	Committed func(ids.Slice) tree.View
	// Propose runs an operation of the node's own at a slice that it acts for, and
	// returns nil once it is committed.
	Propose func(ctx context.Context, id ids.Slice, op *pb.Operation) error
	// Snapshots tells what snapshots there are.
	Snapshots func() Snapshots
	// Forgets reports whether the programs of all members of a slice can forget versions.
	Forgets func(*geoconfig.SliceRow) bool
	// Aside reports whether operations are kept beside the log, which may name chunks.
	Aside func() bool
	// Vouched is the latest time that another machine's clock is known to have reached.
	Vouched func() hlc.Time
	// Short reports whether the disk is short of space, and ShortFor whether that of any
	// member of a slice that this node acts for is.
	Short    func() bool
	ShortFor func(ids.Slice) bool
	HLC      *hlc.Clock
	Terms
	Clock  boottime.Func
	Logger *slog.Logger
}

// Snapshots are the times that are kept, as this node heard of them last.
type Snapshots struct {
	// Times ascend.
	Times []hlc.Time
	// Heard is a moment of the boot clock: every snapshot that was made before it is among
	// the times. 0: nothing was heard yet.
	Heard time.Duration
	// Known says that the programs of all nodes know of snapshots.
	Known bool
}

// Margin is for how long before Heard a snapshot's time may lie that is not among the times:
// it was being made then. Making one takes less, or it is undone.
func Margin(lease time.Duration) time.Duration { return leases * lease }

// Terms say how long a node retains what was replaced or deleted.
type Terms struct {
	// Retention is for how long a version that was replaced can be read, and UploadGrace
	// for how long a chunk stays that was uploaded or told to be here.
	Retention, UploadGrace, Lease time.Duration
	// RetentionLeast is what stays of Retention while space is short.
	RetentionLeast time.Duration
}

// Floor is for how long versions of a slice are retained at least.
func (t Terms) Floor(row *geoconfig.SliceRow) time.Duration {
	return max(t.Retention, t.UploadGrace, leases*t.Lease, 2*row.Policy.Coherence)
}

// Collector collects.
type Collector struct {
	o        Options
	horizons horizons
	// scans is where the search for counts of zero is, in the slices led here; RunSlices
	// alone uses it.
	scans map[ids.Slice]*scan
	// seen are the snapshots as of this step; RunSlices alone uses it.
	seen Snapshots
	// yields are the slices whose retention yields, or has; RunSlices alone uses it.
	yields map[ids.Slice]*yielding
	// reclaiming says that packs have something to give back.
	reclaiming atomic.Bool
}

// New returns a collector that has looked at nothing.
func New(o Options) *Collector {
	return &Collector{o: o, horizons: newHorizons(), scans: map[ids.Slice]*scan{}, yields: map[ids.Slice]*yielding{}}
}

// rest waits as long as some work took, so that others get half of the time at least. It
// is false once ctx has ended.
func (c *Collector) rest(ctx context.Context, began time.Duration) bool {
	const shortest, longest = 2 * time.Millisecond, 5 * time.Second
	return pause(ctx, min(max(c.o.Clock()-began, shortest), longest))
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
