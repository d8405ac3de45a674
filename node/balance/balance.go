// Package balance decides which slice a node gives to another one, so that no disk
// fills up while others have room (docs/design.md, section 4.15). A node above the high
// mark of its site gives one slice after the other, until it is at the low mark. It is
// pure: it knows only what it is told, changes nothing and asks nobody. It moves
// nothing either: package node/server/relief publishes what is decided here, and the
// active of the slice moves the copy (node/server/placement). All of it may be called
// from anywhere.
package balance

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/placement"
)

// Held is a slice of which the node has a copy.
type Held struct {
	Row geoconfig.SliceRow
	// Bytes is what one copy stores.
	Bytes int64
	// Idle is how long ago the last operation of the slice was.
	Idle time.Duration
}

// Own is how the node stands that decides.
type Own struct {
	Node ids.Node
	Site ids.Site
	// Used is what its disk holds, in bytes, without what goes by itself: copies of
	// slices that have left, and what waits to be collected. Capacity is what the disk
	// may hold, without the reserve; 0: not known.
	Used, Capacity int64
	// Full says that the disk has no room: writes are refused.
	Full bool
	// Giving says that it began to give slices away, and is not at the low mark yet.
	Giving bool
}

// World is what the node knows of the others. Decide reads it only.
type World struct {
	Nodes      []geoconfig.Node
	Candidates []placement.Candidate
	// Marks returns what holds at a site.
	Marks func(ids.Site) geoconfig.Balance
	// Reserve is what stays free at each node, in bytes, as it does at this one.
	Reserve int64
	// Busy nodes receive a copy of some slice already, or will.
	Busy map[ids.Node]bool
	// Aside are slices that are not tried now.
	Aside map[ids.Slice]bool
}

// Reason says why a node gives nothing away.
type Reason string

// The reasons. Resting nodes are not above their high mark, or at the low mark again.
const (
	Resting  Reason = ""
	Off      Reason = "off"       // somebody switched it off
	NoSlices Reason = "no_slices" // no slice here that is worth moving holds the space
	NoTaker  Reason = "no_taker"  // no node could take one
	Waiting  Reason = "waiting"   // nodes could, and are busy, or slices change just now
)

// Verdict is what a node does next.
type Verdict struct {
	// Give names the slice and who takes it; Slice 0: none.
	Give  geoconfig.Giving
	Bytes int64
	// Giving is Own.Giving from now on.
	Giving bool
	// Why says why nothing is given.
	Why Reason
}

// Goes says whether the node gives slices away: it began above the high mark, or has
// no room, and goes on until it is at the low mark.
func (o Own) Goes(marks geoconfig.Balance) bool {
	if o.Capacity <= 0 || marks.Off {
		return false
	}
	switch marks.FillOf(o.Used, o.Capacity) {
	case geoconfig.High:
		return true
	case geoconfig.Middling:
		return o.Giving || o.Full
	}
	return false
}

// Decide says which slice the node gives away next, and to whom. Slices without
// operations for longest go first, in steps that double: moving them disturbs fewest,
// and what is used stays near. Of one step, the largest goes that is not more than must
// go, so that few slices move; where all are more, the smallest.
func Decide(own Own, held []Held, w *World) Verdict {
	marks := w.Marks(own.Site)
	if !own.Goes(marks) {
		v := Verdict{}
		if marks.Off && marks.FillOf(own.Used, own.Capacity) == geoconfig.High {
			v.Why = Off
		}
		return v
	}
	excess := own.Used - marks.LowBytes(own.Capacity)
	out := Verdict{Giving: true, Why: NoSlices}
	for _, h := range inOrder(held, excess) {
		takers := placement.Takers(&h.Row, own.Node, w.Candidates)
		fits := slices.DeleteFunc(slices.Clone(takers), func(c placement.Candidate) bool { return !w.fits(c, h.Bytes) })
		free := slices.DeleteFunc(slices.Clone(fits), func(c placement.Candidate) bool { return w.Busy[c.Node] })
		switch {
		case !settled(&h.Row, w.Candidates) || w.Aside[h.Row.ID] || len(fits) > 0 && len(free) == 0:
			out.Why = Waiting
			continue
		case len(fits) == 0:
			if out.Why != Waiting {
				out.Why = NoTaker
			}
			continue
		}
		to := slices.MinFunc(free, func(a, b placement.Candidate) int { return w.better(own.Site, a, b) })
		return Verdict{Give: geoconfig.Giving{Slice: h.Row.ID, To: to.Node}, Bytes: h.Bytes, Giving: true}
	}
	return out
}

// worth is the part of what must go that a slice has to hold at least: smaller ones cost
// changes of rows and free nothing that counts.
const worth = 1000

// inOrder sorts the slices by which goes first, without those that are not worth it.
func inOrder(held []Held, excess int64) []Held {
	out := slices.DeleteFunc(slices.Clone(held), func(h Held) bool { return h.Bytes <= 0 || h.Bytes < excess/worth })
	slices.SortFunc(out, func(a, b Held) int {
		if x, y := idleStep(a.Idle), idleStep(b.Idle); x != y {
			return cmp.Compare(y, x)
		}
		if x, y := a.Bytes > excess, b.Bytes > excess; x != y {
			if y {
				return -1
			}
			return 1
		} else if x {
			return cmp.Or(cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Row.ID, b.Row.ID))
		}
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Row.ID, b.Row.ID))
	})
	return out
}

// idleStep numbers times that double: under a minute, two, four and so on.
func idleStep(idle time.Duration) int { return bits.Len64(uint64(max(idle/time.Minute, 0))) }

// settled reports whether nothing is to be done about a slice's members but what is
// decided here, and all of them are whole.
func settled(row *geoconfig.SliceRow, candidates []placement.Candidate) bool {
	if len(row.Members) != row.Policy.Level || len(row.Normals()) != row.Policy.Level {
		return false
	}
	plain := slices.Clone(candidates)
	for i := range plain {
		plain[i].Gives = geoconfig.Giving{}
	}
	return placement.Next(row, plain, nil, nil) == placement.Step{}
}

// node returns the row of a node.
func (w *World) node(id ids.Node) geoconfig.Node {
	i := slices.IndexFunc(w.Nodes, func(n geoconfig.Node) bool { return n.ID == id })
	if i < 0 {
		return geoconfig.Node{}
	}
	return w.Nodes[i]
}

// fits reports whether a node has room for a copy: with it, the disk is not above the
// middle between its marks. So a node that took a slice is far from giving one away.
func (w *World) fits(c placement.Candidate, bytes int64) bool {
	n := w.node(c.Node)
	room := n.CapacityBytes - w.Reserve
	return n.CapacityBytes > 0 && n.UsedBytes+bytes <= w.Marks(c.Site).MiddleBytes(max(room, 0))
}

// better orders nodes that could take a copy: the site's own first, then the emptiest
// disk.
func (w *World) better(site ids.Site, a, b placement.Candidate) int {
	if x, y := a.Site == site, b.Site == site; x != y {
		if x {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(w.filled(a.Node), w.filled(b.Node)), cmp.Compare(a.Load, b.Load), cmp.Compare(a.Node, b.Node))
}

// filled is the part of a node's disk that is used.
func (w *World) filled(id ids.Node) float64 {
	n := w.node(id)
	return float64(n.UsedBytes) / float64(max(n.CapacityBytes, 1))
}

// Remedy says for people, as a sentence without a capital or an end, why a node at a
// site gives nothing away although its disk is above the high mark, and what helps.
// Empty: it does, or need not.
func Remedy(why Reason, site ids.Site, marks geoconfig.Balance) string {
	switch why {
	case Off:
		return fmt.Sprintf("moving slices away is switched off: `cartwheel balance set %s --on`", site)
	case NoSlices:
		return "no slice holds what fills it: look at `cartwheel status` for what does, and remove files of other programs or shorten the retention"
	case NoTaker:
		return fmt.Sprintf("no node could take a slice without breaking its policy or filling up itself: add a node at %s, or delete files", site)
	}
	return ""
}
