// Package allocation says which slice a new object goes to, and makes a slice
// where none fits: it chooses the members, writes the row and waits for the
// active. Package placement has the rules; this one knows the nodes and the rows.
// An Allocator is safe for concurrent use.
package allocation

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/server/placement"
)

// Roster is the cluster's configuration.
type Roster interface {
	Node(ids.Node) (geoconfig.Node, bool)
	Nodes() []geoconfig.Node
	Slice(ids.Slice) (geoconfig.SliceRow, bool)
	Slices() []geoconfig.SliceRow
}

// Options are what an Allocator is made of. Every field is needed.
type Options struct {
	Self   ids.Node
	Site   ids.Site
	Roster Roster
	Sites  func() []geoconfig.Site
	// Generation is that of the cluster, which every row names.
	Generation func() ids.Generation
	// Connected reports whether beacons reach a node.
	Connected func(ids.Node) bool
	Distance  placement.Distance
	// Measure is a placement.Probe that ends with ctx, and soon.
	Measure func(ctx context.Context, from ids.Node, to []ids.Node) map[ids.Node]time.Duration
	// Returns reports whether a slice is about to return to its home site.
	Returns func(ids.Slice) bool
	// Serves reports whether this node acts for a slice now.
	Serves func(ids.Slice) bool
	// Apply writes to the configuration, Key names a batch of some kind, Learn
	// takes a row in that was written.
	Apply func(context.Context, geoconfig.Batch) (ids.Revision, error)
	Key   func(kind string) string
	Learn func(...geoconfig.SliceRow)
	// ExpectedNodes is how many nodes make the root slice together.
	ExpectedNodes int
	// MaxNewSlices bounds the slices that are made for one user within an hour.
	MaxNewSlices int
	// LeaderTimeout bounds the wait for a new slice's active.
	LeaderTimeout time.Duration
	Clock         func() time.Duration
	Wall          func() time.Time
	Random        func() uint64
	Logger        *slog.Logger
}

// Allocator owns the turn to choose or make a slice, and what was made for each
// user.
type Allocator struct {
	o    Options
	turn chan struct{} // holds one while a slice is chosen or made
	made quota
}

// New returns an allocator that has made nothing yet.
func New(o Options) *Allocator { return &Allocator{o: o, turn: make(chan struct{}, 1)} }

// Candidates lists the nodes that could take replicas.
func (a *Allocator) Candidates() []placement.Candidate {
	return placement.Candidates(a.o.Roster.Nodes(), a.o.Roster.Slices(), func(n geoconfig.Node) bool {
		return n.Incarnation == 0 || n.ID != a.o.Self && !a.o.Connected(n.ID)
	})
}

// MakeRoot makes the root slice of a new cluster, once all expected nodes are
// there. The node with the lowest ID does it; the store lets only one win.
func (a *Allocator) MakeRoot(ctx context.Context) {
	nodes := a.o.Roster.Nodes()
	if len(nodes) < a.o.ExpectedNodes || len(nodes) == 0 || nodes[0].ID != a.o.Self {
		return
	}
	candidates := a.Candidates()
	if slices.ContainsFunc(candidates, func(c placement.Candidate) bool { return c.Away }) {
		return
	}
	policy := geoconfig.Policy{Home: a.o.Site, Level: geoconfig.DefaultLevel, Kind: geoconfig.Ordinary}
	_, err := a.write(ctx, ids.RootSlice, policy, candidates)
	if err != nil && !fault.Is(err, fault.Conflict) && ctx.Err() == nil {
		a.o.Logger.Warn("the root slice could not be made", logattr.Err(err))
	}
}

// write writes the row of a new slice.
func (a *Allocator) write(ctx context.Context, id ids.Slice, policy geoconfig.Policy, candidates []placement.Candidate) (geoconfig.SliceRow, error) {
	members, err := placement.Choose(policy, candidates, a.o.Self, a.o.Distance, func(from ids.Node, to []ids.Node) map[ids.Node]time.Duration {
		return a.o.Measure(ctx, from, to)
	})
	if err != nil {
		return geoconfig.SliceRow{}, err
	}
	row := geoconfig.SliceRow{ID: id, Policy: policy, Epoch: 1, Active: members[0], Generation: a.o.Generation()}
	for _, m := range members {
		node, _ := a.o.Roster.Node(m)
		row.Members = append(row.Members, geoconfig.Member{Node: m, State: geoconfig.Normal, Incarnation: node.Incarnation})
	}
	rev, err := a.o.Apply(ctx, geoconfig.Batch{
		Key:    a.o.Key("slice"),
		Slices: []geoconfig.SliceSwap{{Row: row}},
		Audit: []geoconfig.AuditRecord{{AtNS: a.o.Wall().UnixNano(), Who: string(a.o.Self), Action: "slice.create",
			Subject: fmt.Sprintf("slices/%d", id), Detail: fmt.Sprintf("home %s, level %d", policy.Home, policy.Level)}},
	})
	if err != nil {
		return row, err
	}
	row.Revision = rev
	a.o.Learn(row)
	return row, nil
}

// newSlice makes a slice with the next free ID and waits until it is led.
func (a *Allocator) newSlice(ctx context.Context, policy geoconfig.Policy, rows []geoconfig.SliceRow) (geoconfig.SliceRow, error) {
	next := ids.RootSlice + 1
	for _, r := range rows {
		next = max(next, r.ID+1)
	}
	for ; next <= ids.MaxSlice; next++ {
		row, err := a.write(ctx, next, policy, a.Candidates())
		if fault.Is(err, fault.Conflict) {
			continue
		}
		if err != nil {
			return row, err
		}
		a.o.Logger.Info("made a slice", logattr.Slice(row.ID), slog.String("home", string(policy.Home)), slog.Int("level", policy.Level))
		return row, a.awaitLeader(ctx, row)
	}
	return geoconfig.SliceRow{}, fault.E(fault.NoSpace, "allocation.newSlice", "", "no slice ID is left")
}

// awaitLeader waits a moment for the new active, so that the caller's first
// operation finds it ready; it tries again by itself if not.
func (a *Allocator) awaitLeader(ctx context.Context, row geoconfig.SliceRow) error {
	if row.Active != a.o.Self {
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, a.o.LeaderTimeout)
	defer cancel()
	for !a.o.Serves(row.ID) {
		select {
		case <-limit.Done():
			return nil
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}
