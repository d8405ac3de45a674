// Package relief has a node give slices to other nodes while its disk is above the high
// mark of its site (docs/design.md, section 4.15). Package balance decides; this one
// knows the node, remembers what is under way, and has it published in the node's row.
// The slice's active sees it there and moves the copy. So one slice at a time leaves a
// node, nothing is asked of anybody, and a restart forgets only what can be seen again.
// A Giver is safe for concurrent use.
package relief

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/balance"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/placement"
)

const (
	// lookEvery is how often a node looks whether it should give a slice away.
	lookEvery = time.Second
	// joinWithin is how long the active may take to begin a copy. Then the slice is put
	// aside for asideFor: its active may be away, or not know how.
	joinWithin = 2 * time.Minute
	asideFor   = 30 * time.Minute
	// rest is the pause after a slice has left, and until the node that took it counts as
	// idle again: by then its row tells how full it is. A full node goes on at once, with
	// other nodes.
	rest = 20 * time.Second
	// again is the pause after nothing could be given: looking at all slices costs
	// something, and what stands in the way changes slowly.
	again = 10 * time.Second
)

// Roster is the cluster's configuration.
type Roster interface {
	Node(ids.Node) (geoconfig.Node, bool)
	Nodes() []geoconfig.Node
	Sites() []geoconfig.Site
	Slice(ids.Slice) (geoconfig.SliceRow, bool)
	Slices() []geoconfig.SliceRow
	// Away is since when the configuration store is away; zero: it is not.
	Away() time.Time
}

// Disk is how full the node's disk is, in bytes.
type Disk struct {
	// Used counts against Capacity. Waiting is the part of it that the node frees without
	// giving a slice away.
	Used, Waiting, Capacity int64
	// Full says that writes are refused.
	Full bool
}

// Options are what a Giver is made of. Every field is needed.
type Options struct {
	Self   ids.Node
	Site   ids.Site
	Roster Roster
	// Candidates lists the nodes as those that could take replicas.
	Candidates func() []placement.Candidate
	Disk       func() Disk
	// Reserve is what stays free at each node, in bytes.
	Reserve int64
	// Stored is what this node's copy of a slice stores, Idle how long ago its last
	// operation was. ok is false where that cannot be read.
	Stored func(ids.Slice) (bytes int64, ok bool)
	Idle   func(ids.Slice) time.Duration
	// Settle is how long the space of a slice that has left may take to come back.
	Settle time.Duration
	// Refresh writes the node's row anew, which FillRow helps to make.
	Refresh func(context.Context)
	Clock   func() time.Duration
	Logger  *slog.Logger
}

// Giver owns what a node gives away.
type Giver struct {
	o Options

	mu      sync.Mutex // guards below
	giving  bool       // balance.Own.Giving
	offer   offer      // what is under way; its slice is 0: nothing
	left    []departed // slices that left here, whose space has not come back
	aside   map[ids.Slice]time.Duration
	takers  map[ids.Node]time.Duration // until when nodes that took a slice count as busy
	restTo  time.Duration              // until when nothing is given after the last one
	idleTo  time.Duration              // until when nobody looks, as nothing could be given
	verdict balance.Verdict
}

// offer is a slice that is given away.
type offer struct {
	geoconfig.Giving
	bytes int64
	since time.Duration
	taken bool // the other node has become a member
}

// departed is a slice that has left.
type departed struct {
	bytes int64
	at    time.Duration
}

// New returns a giver that goes on with what the node's row says it gives away: the
// node was started anew.
func New(o Options) *Giver {
	g := &Giver{o: o, aside: map[ids.Slice]time.Duration{}, takers: map[ids.Node]time.Duration{}}
	if row, ok := o.Roster.Node(o.Self); ok && row.Giving != nil {
		if bytes, here := o.Stored(row.Giving.Slice); here {
			g.giving, g.offer = true, offer{Giving: *row.Giving, bytes: bytes, since: o.Clock()}
		}
	}
	return g
}

// Run looks after the node's disk until ctx ends.
func (g *Giver) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if g.Step() {
			g.o.Refresh(ctx)
		}
	}
}

// Step looks once, and reports whether the node's row must be written: the node gives
// another slice away than before, or none any more. Nothing changes while the
// configuration store is away.
func (g *Giver) Step() (changed bool) {
	if !g.o.Roster.Away().IsZero() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now, before := g.o.Clock(), g.offer.Giving
	g.forgetLocked(now)
	own := g.ownLocked()
	if g.offer.Slice != 0 {
		g.watchLocked(own, now)
	}
	if g.offer.Slice == 0 && now >= g.idleTo && (now >= g.restTo || own.Full) {
		g.chooseLocked(own, now)
	}
	return g.offer.Giving != before
}

// forgetLocked drops what is over: slices whose space is back, and what was put aside.
// Called with mu held.
func (g *Giver) forgetLocked(now time.Duration) {
	g.left = slices.DeleteFunc(g.left, func(d departed) bool { return now-d.at > g.o.Settle })
	maps.DeleteFunc(g.aside, func(_ ids.Slice, until time.Duration) bool { return now >= until })
	maps.DeleteFunc(g.takers, func(_ ids.Node, until time.Duration) bool { return now >= until })
}

// ownLocked is how the node stands. What has left and what is leaving counts as gone:
// the disk gives it back later, and giving more meanwhile would be too much. Called
// with mu held.
func (g *Giver) ownLocked() balance.Own {
	d := g.o.Disk()
	used := d.Used - d.Waiting
	for _, x := range g.left {
		used -= x.bytes
	}
	return balance.Own{Node: g.o.Self, Site: g.o.Site, Used: max(used, 0), Capacity: max(d.Capacity-g.o.Reserve, 0), Full: d.Full, Giving: g.giving}
}

// marks returns what holds at a site.
func (g *Giver) marks(site ids.Site) geoconfig.Balance {
	for _, s := range g.o.Roster.Sites() {
		if s.Name == site {
			return s.Marks()
		}
	}
	return geoconfig.DefaultBalance()
}

// watchLocked ends the offer once the slice has left, or where it may not go on. Called
// with mu held.
func (g *Giver) watchLocked(own balance.Own, now time.Duration) {
	x := &g.offer
	row, known := g.o.Roster.Slice(x.Slice)
	_, member := row.Member(g.o.Self)
	_, joined := row.Member(x.To)
	switch {
	case known && !member:
		g.o.Logger.Info("a slice was given away", logattr.Slice(x.Slice), slog.String("to", string(x.To)), slog.Int64("bytes", x.bytes))
		g.left = append(g.left, departed{x.bytes, now})
		g.restTo, g.takers[x.To] = now+rest, now+rest
	case joined && own.Goes(g.marks(g.o.Site)):
		x.taken = true
		return
	case !joined && !x.taken && now-x.since <= joinWithin && own.Goes(g.marks(g.o.Site)):
		return
	default:
		g.o.Logger.Info("a slice stays that was to be given away", logattr.Slice(x.Slice), slog.String("to", string(x.To)), slog.Bool("begun", x.taken))
		g.aside[x.Slice] = now + asideFor
	}
	g.offer = offer{}
}

// chooseLocked picks the next slice. Called with mu held.
func (g *Giver) chooseLocked(own balance.Own, now time.Duration) {
	w := &balance.World{Nodes: g.o.Roster.Nodes(), Marks: g.marks, Reserve: g.o.Reserve, Busy: map[ids.Node]bool{}, Aside: map[ids.Slice]bool{}}
	var held []balance.Held
	if own.Goes(g.marks(g.o.Site)) {
		g.idleTo = now + again
		rows := g.o.Roster.Slices()
		w.Candidates = g.o.Candidates()
		g.occupiedLocked(w, rows)
		held = g.held(rows)
	}
	for id := range g.aside {
		w.Aside[id] = true
	}
	before := g.verdict.Why
	g.verdict = balance.Decide(own, held, w)
	g.giving = g.verdict.Giving
	if v := g.verdict; v.Give.Slice != 0 {
		g.offer, g.idleTo = offer{Giving: v.Give, bytes: v.Bytes, since: now}, 0
		g.o.Logger.Info("giving a slice away, as the disk is above its high mark", logattr.Slice(v.Give.Slice), slog.String("to", string(v.Give.To)),
			slog.Int64("bytes", v.Bytes), slog.Bool("full", own.Full))
	} else if v.Why == balance.NoTaker && before != v.Why {
		g.o.Logger.Warn("the disk is above its high mark, and no node can take a slice")
	}
}

// occupiedLocked notes the nodes that receive a copy, or will. Called with mu held.
func (g *Giver) occupiedLocked(w *balance.World, rows []geoconfig.SliceRow) {
	for i := range rows {
		for _, m := range rows[i].Members {
			if m.State == geoconfig.Migrating {
				w.Busy[m.Node] = true
			}
		}
	}
	for _, n := range w.Nodes {
		if n.Giving != nil && n.ID != g.o.Self {
			w.Busy[n.Giving.To] = true
		}
	}
	for id := range g.takers {
		w.Busy[id] = true
	}
}

// held lists the slices of which this node has a whole copy.
func (g *Giver) held(rows []geoconfig.SliceRow) []balance.Held {
	var out []balance.Held
	for i := range rows {
		m, in := rows[i].Member(g.o.Self)
		if !in || m.State != geoconfig.Normal {
			continue
		}
		if bytes, ok := g.o.Stored(rows[i].ID); ok {
			out = append(out, balance.Held{Row: rows[i], Bytes: bytes, Idle: g.o.Idle(rows[i].ID)})
		}
	}
	return out
}

// FillRow puts into the node's row how full its disk is, and what it gives away.
func (g *Giver) FillRow(row *geoconfig.Node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.o.Disk()
	row.Fill = g.marks(g.o.Site).FillOf(d.Used, max(d.Capacity-g.o.Reserve, 0))
	if d.Full {
		row.Fill = geoconfig.Full
	}
	row.Giving = nil
	if g.offer.Slice != 0 {
		now := g.offer.Giving
		row.Giving = &now
	}
}

// Report tells what the node gives away, or why it does not.
func (g *Giver) Report() status.Balance {
	g.mu.Lock()
	defer g.mu.Unlock()
	marks, own := g.marks(g.o.Site), g.ownLocked()
	out := status.Balance{HighPercent: marks.High, LowPercent: marks.Low, Off: marks.Off, Giving: g.offer.Slice, To: g.offer.To,
		Fill: marks.FillOf(own.Used, own.Capacity).String()}
	if own.Full {
		out.Fill = geoconfig.Full.String()
	}
	if g.offer.Slice == 0 && marks.FillOf(own.Used, own.Capacity) == geoconfig.High {
		out.Remedy = balance.Remedy(g.verdict.Why, g.o.Site, marks)
	}
	return out
}
