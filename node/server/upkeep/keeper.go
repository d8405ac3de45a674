// Package upkeep looks after what a node is responsible for: its checkpoints, the
// members of the slices that it leads, the root slice of a new cluster, and its
// own row. One goroutine does all of it, a step at a time; what may take long
// there delays the rest and nothing else. A Keeper is not safe for concurrent use:
// Run owns it.
package upkeep

import (
	"context"
	"log/slog"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/repair"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/placement"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/tree"
)

// maintainEvery is how often a node looks after what it is responsible for.
const maintainEvery = 250 * time.Millisecond

// Loop is what upkeep asks of the node's loop. EachSlice and Snapshot are called
// on the loop's goroutine.
type Loop interface {
	Ask(context.Context, func(*replica.Node, replica.Time)) error
	Do(func(*replica.Node, replica.Time)) bool
	EachSlice(func(ids.Slice))
	Snapshot(ids.Slice) (replica.Snapshot, bool)
}

// Ledger saves slices' states and trims the journal.
type Ledger interface {
	Mark() replog.Mark
	Checkpoint(context.Context, replog.Mark, []replog.State) error
}

// Roster is the cluster's configuration.
type Roster interface {
	Node(ids.Node) (geoconfig.Node, bool)
	Slice(ids.Slice) (geoconfig.SliceRow, bool)
	Slices() []geoconfig.SliceRow
	// Away is since when the configuration store is away; zero: it is not.
	Away() time.Time
}

// Slices makes slices and knows the nodes that could take replicas.
type Slices interface {
	Candidates() []placement.Candidate
	MakeRoot(context.Context)
}

// Options are what a Keeper is made of. Every field is needed.
type Options struct {
	Self            ids.Node
	Loop            Loop
	Ledger          Ledger
	NeedsCheckpoint func() bool
	Roster          Roster
	Slices          Slices
	// Leading lists the rows of the slices that this node acts for.
	Leading  func() []geoconfig.SliceRow
	Distance placement.Distance
	// Measure is a placement.Probe that ends with ctx, and soon.
	Measure func(ctx context.Context, from ids.Node, to []ids.Node) map[ids.Node]time.Duration
	// Committed is what this node's own copy of a slice shows.
	Committed func(ids.Slice) tree.View
	// HandOver begins a hand-over; None: it was begun.
	HandOver func(ctx context.Context, id ids.Slice, to ids.Node) (fault.Kind, error)
	// Claim says how urgent a copy of a slice is.
	Claim func(*geoconfig.SliceRow) repair.Claim
	// FailBack hands slices back to their homes.
	FailBack func(context.Context)
	// Refresh writes the node's own row anew.
	Refresh func(context.Context)
	// MaxSliceObjects closes a slice to creation.
	MaxSliceObjects uint64
	// FailedAfter is how long a member may be failed before another node takes
	// its place.
	FailedAfter time.Duration
	Clock       func() time.Duration
	Logger      *slog.Logger
}

// Keeper owns what upkeep remembers between two looks.
type Keeper struct {
	o Options
	// failedSince is when members were first seen failed.
	failedSince map[failedMember]time.Duration
	passed      map[ids.Slice]time.Duration // when hand-overs began, the late ones
	unsaved     fault.Kind                  // why the last checkpoint failed
}

// New returns a keeper that has seen no member fail.
func New(o Options) *Keeper {
	return &Keeper{o: o, failedSince: map[failedMember]time.Duration{}, passed: map[ids.Slice]time.Duration{}}
}

// Run looks after the node's part until ctx ends: checkpoints, its own row,
// the root slice of a new cluster, and missing members.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if k.o.NeedsCheckpoint() {
			k.checkpoint(ctx)
		}
		if _, ok := k.o.Roster.Slice(ids.RootSlice); !ok && k.o.Roster.Away().IsZero() {
			k.o.Slices.MakeRoot(ctx)
		}
		k.o.FailBack(ctx)
		if n%4 == 0 {
			k.refill(ctx)
		}
		if n%40 == 0 {
			k.o.Refresh(ctx)
		}
	}
}

// checkpoint saves the slices' states and trims the journal.
func (k *Keeper) checkpoint(ctx context.Context) {
	var states []replog.State
	var mark replog.Mark
	err := k.o.Loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		k.o.Loop.EachSlice(func(id ids.Slice) {
			st := replog.State{Slice: id}
			status, ok := core.Status(id)
			if !ok || status.Row == nil {
				return
			}
			st.Row = status.Row
			_, member := st.Row.Member(k.o.Self)
			if c, incomplete := core.Incomplete(id); incomplete {
				st.Copying = &c
			} else if st.Gone = !member; member {
				st.Snapshot, st.Known = k.o.Loop.Snapshot(id)
			}
			states = append(states, st)
		})
		mark = k.o.Ledger.Mark()
	})
	if err == nil {
		err = k.o.Ledger.Checkpoint(ctx, mark, states)
	}
	if err != nil && ctx.Err() == nil && fault.KindOf(err) != k.unsaved {
		k.o.Logger.Error("a checkpoint failed: it is tried again", logattr.Err(err))
	}
	k.unsaved = fault.KindOf(err)
}
