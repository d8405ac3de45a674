// Package repair says whose turn it is where several slices wait for a copy: for the
// same node, or because an active makes no more at once (docs/design.md, section 4.16).
// A slice with fewer whole copies never waits for one with more. Compare and Room are
// pure. A Losses remembers since when slices lack copies, and is safe for concurrent
// use; the rest may be called from anywhere.
package repair

import (
	"cmp"
	"slices"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Claim is a slice that waits for a copy, and what decides its turn.
type Claim struct {
	Slice ids.Slice
	// Copies are the whole ones that the slice has, of Level that its policy asks for.
	Copies, Level int
	// First says that an operator wants it before others that have as many copies.
	First bool
	// Since is when the slice was seen to lack copies first, by the node's clock.
	Since time.Duration
	// Urgent says that the copy lets a node go whose disk has no room, so that the slice
	// can be written again.
	Urgent bool
}

// IsRepair reports whether the slice lacks copies. Otherwise the copy takes the place of
// a whole one.
func (c Claim) IsRepair() bool { return c.Copies < c.Level }

// Compare orders claims, the one whose turn comes first before the others: slices that
// lack copies before those that only move, then those with the fewest copies left, then
// those that an operator named, then the oldest loss. The operator's word comes before
// the age, since two losses are hardly ever of one age. Of moves, those come first that
// let a full node go.
func Compare(a, b Claim) int {
	switch {
	case a.IsRepair() != b.IsRepair():
		return before(a.IsRepair())
	case a.IsRepair() && a.Copies != b.Copies:
		return cmp.Compare(a.Copies, b.Copies)
	case a.First != b.First:
		return before(a.First)
	case a.Urgent != b.Urgent:
		return before(a.Urgent)
	}
	return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Slice, b.Slice))
}

func before(is bool) int {
	if is {
		return -1
	}
	return 1
}

// Displaces reports whether a copy for a must not wait until one for b is made: b has
// more copies left, or only moves.
func Displaces(a, b Claim) bool {
	return a.IsRepair() && (!b.IsRepair() || a.Copies < b.Copies)
}

// Most is how many copies one active has made at once, of all slices that it leads. More
// would only share the same disks and lines, and each one delays those before it.
const Most = 32

// Room is how many copies may be begun. The zero value has room for Most.
type Room struct{ made []Claim }

// Take notes a copy that is being made.
func (r *Room) Take(c Claim) { r.made = append(r.made, c) }

// Has reports whether a copy for c may be begun. Copies that c displaces do not count, so
// that any number of slices with more copies keeps none with fewer waiting.
func (r *Room) Has(c Claim) bool {
	n := 0
	for _, m := range r.made {
		if !Displaces(c, m) {
			n++
		}
	}
	return n < Most
}

// Losses remembers since when slices lack copies. The zero value knows of none.
type Losses struct {
	mu    sync.Mutex // guards since
	since map[ids.Slice]time.Duration
}

// Note takes a newer row in.
func (l *Losses) Note(row *geoconfig.SliceRow, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(row.Normals()) >= row.Policy.Level {
		delete(l.since, row.ID)
		return
	}
	if _, known := l.since[row.ID]; known {
		return
	}
	if l.since == nil {
		l.since = map[ids.Slice]time.Duration{}
	}
	l.since[row.ID] = now
}

// Since returns when a slice was seen to lack copies first; now where it does not.
func (l *Losses) Since(id ids.Slice, now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.since[id]; known {
		return at
	}
	return now
}

// Roster is a node's copy of the configuration.
type Roster interface {
	Nodes() []geoconfig.Node
	Sites() []geoconfig.Site
}

// ClaimOf makes the claim of a slice. One that lacks nothing, and gets no copy, is
// judged by its row alone: an active has many of these.
func (l *Losses) ClaimOf(row *geoconfig.SliceRow, r Roster, now time.Duration) Claim {
	c := Claim{Slice: row.ID, Copies: len(row.Normals()), Level: row.Policy.Level, Since: l.Since(row.ID, now)}
	if !c.IsRepair() && !slices.ContainsFunc(row.Members, func(m geoconfig.Member) bool { return m.State.Junior() }) {
		return c
	}
	c.First = slices.ContainsFunc(r.Sites(), func(s geoconfig.Site) bool { return slices.Contains(s.First, row.ID) })
	c.Urgent = slices.ContainsFunc(r.Nodes(), func(n geoconfig.Node) bool {
		return n.Fill == geoconfig.Full && n.Giving != nil && n.Giving.Slice == row.ID
	})
	return c
}
