// Package geoconfig holds the rows of the cluster's configuration (sites, nodes,
// users, slices with their members and policies) and the contract of the store
// that keeps them. It does no I/O and imports the standard library and ids only;
// the stores live in the packages below it. All its types are plain values: share
// them by copy.
package geoconfig

import (
	"fmt"
	"time"

	"cartwheel.dev/geo-config/ids"
)

// MemberState is what a member of a replica group is, as in BeanFS.
type MemberState uint8

// The states of a member. The numbers are stored and sent: never renumber.
const (
	// Normal members (N) are the active and the standbys: they hold every
	// committed operation.
	Normal MemberState = 1
	// Recovering members (R) are juniors after a transient failure.
	Recovering MemberState = 2
	// Migrating members (M) are juniors on a node that is new to the slice.
	Migrating MemberState = 3
	// Failed members (F) do not take part.
	Failed MemberState = 4
)

func (s MemberState) String() string {
	switch s {
	case Normal:
		return "N"
	case Recovering:
		return "R"
	case Migrating:
		return "M"
	case Failed:
		return "F"
	}
	return fmt.Sprintf("MemberState(%d)", uint8(s))
}

// Junior reports whether a member in this state is catching up.
func (s MemberState) Junior() bool { return s == Recovering || s == Migrating }

// Kind is what operations a slice's objects allow.
type Kind uint8

// The kinds of slices. The numbers are stored and sent: never renumber.
const (
	Ordinary  Kind = 1
	WriteOnce Kind = 2
)

// Policy is what a slice must satisfy.
type Policy struct {
	// Home is the site where the active should be.
	Home ids.Site `json:"home"`
	// Level is the number of replicas, at least 1.
	Level int `json:"level"`
	// Sites is the number of different sites that the replicas are spread
	// over, 1 to Level; 0 means as many as there are, up to Level.
	Sites int  `json:"sites"`
	Kind  Kind `json:"kind"`
	// Coherence is how long the standbys may lag behind; 0 means not at all.
	Coherence time.Duration `json:"coherence_ns"`
}

// WantedSites is the number of different sites for the replicas where there are
// enough of them.
func (p Policy) WantedSites() int {
	if p.Sites == 0 {
		return p.Level
	}
	return p.Sites
}

// Equal says whether policies ask for the same: 0 sites is as many as there are
// up to the level, and no kind is the ordinary one.
func (p Policy) Equal(o Policy) bool { return p.spelledOut() == o.spelledOut() }

// spelledOut is the policy with its defaults in their places.
func (p Policy) spelledOut() Policy {
	p.Sites = p.WantedSites()
	if p.Kind == 0 {
		p.Kind = Ordinary
	}
	return p
}

// DefaultLevel is the number of replicas where no cue says otherwise.
const DefaultLevel = 3

// Member is one node's part in a slice.
type Member struct {
	Node        ids.Node        `json:"node"`
	State       MemberState     `json:"state"`
	Incarnation ids.Incarnation `json:"incarnation"`
}

// SliceRow is one entry of the slice table.
type SliceRow struct {
	ID     ids.Slice `json:"id"`
	Policy Policy    `json:"policy"`
	Epoch  ids.Epoch `json:"epoch"`
	Active ids.Node  `json:"active"`
	// Members lists every member once, the active among them.
	Members []Member `json:"members"`
	// Hear is h of docs/design.md, 4.5: how many normal members a takeover must
	// hear, itself among them, before it swaps; 0 and 1 mean itself alone.
	Hear int `json:"hear"`
	// Closed slices take no new objects.
	Closed     bool           `json:"closed"`
	Generation ids.Generation `json:"generation"`
	// Revision is when the row last changed; the store sets it.
	Revision ids.Revision `json:"revision"`
}

// Clone returns a copy that shares nothing with r.
func (r SliceRow) Clone() SliceRow {
	r.Members = append([]Member(nil), r.Members...)
	return r
}

// Member returns the part that a node has in the slice.
func (r SliceRow) Member(n ids.Node) (Member, bool) {
	for _, m := range r.Members {
		if m.Node == n {
			return m, true
		}
	}
	return Member{}, false
}

// StaysActive reports whether a node that acts no more for the slice is its active
// all the same, as between two epochs. It keeps its table of leases and locks
// then. Clients hear that they lost theirs by a keep-alive that comes while the
// node does not act, or from another active; here they may hear neither.
func (r *SliceRow) StaysActive(n ids.Node) bool { return r != nil && r.Active == n }

// Normals returns the nodes in state N, the active among them, in row order.
func (r SliceRow) Normals() []ids.Node {
	var out []ids.Node
	for _, m := range r.Members {
		if m.State == Normal {
			out = append(out, m.Node)
		}
	}
	return out
}

// Site is a row of the sites' table.
type Site struct {
	Name     ids.Site `json:"name"`
	Location string   `json:"location,omitempty"`
	// Budgets bound the content between this site and those with later names, in
	// the order of these.
	Budgets []Budget `json:"budgets,omitempty"`
	// First are the slices at home here whose repair goes before that of others with as
	// many copies left, by number. An administrator says so.
	First []ids.Slice `json:"first,omitempty"`
	// Balance says when the site's nodes give slices away; nil: DefaultBalance.
	Balance  *Balance     `json:"balance,omitempty"`
	Revision ids.Revision `json:"revision"`
}

// Coordinate is a published Vivaldi position: milliseconds of RTT in a
// Euclidean plane, plus a height above it, plus the relative error.
type Coordinate struct {
	Vector []float64 `json:"vector_ms"`
	Height float64   `json:"height_ms"`
	Error  float64   `json:"error"`
}

// Node is a row of the nodes' table.
type Node struct {
	ID            ids.Node        `json:"id"`
	Site          ids.Site        `json:"site"`
	Addresses     []string        `json:"addresses"` // multiaddresses, the best first
	Coordinate    Coordinate      `json:"coordinate"`
	CapacityBytes int64           `json:"capacity_bytes"`
	UsedBytes     int64           `json:"used_bytes"`
	Incarnation   ids.Incarnation `json:"incarnation"`
	Version       string          `json:"version"`
	// Feature is the highest feature level that the node's program knows (package
	// version); 0: it is of before there were levels.
	Feature int `json:"feature,omitempty"`
	// Together lists nodes of other sites that this one measured so near that
	// they fail with it, Apart nodes of its own site that it measured far away.
	Together []ids.Node `json:"together,omitempty"`
	Apart    []ids.Node `json:"apart,omitempty"`
	// Draining nodes are to be left: their slices' members go to other nodes, and
	// no new ones are placed here. An administrator says so.
	Draining bool `json:"draining,omitempty"`
	// Fill is how full the node found its disk by its site's marks.
	Fill Fill `json:"fill,omitempty"`
	// Giving is the slice of which the node gives its copy away now; nil: none.
	Giving   *Giving      `json:"giving,omitempty"`
	Revision ids.Revision `json:"revision"`
}

// User is a row of the users' table: a public key acts as one uid, unless the
// row marks a trusted host, which may act as any. Only a trusted host's row may
// have uid 0 or no gids. An admin may order what changes the cluster.
type User struct {
	Name        ids.User `json:"name"`
	Key         string   `json:"key"` // peer ID text of the user's public key
	UID         uint32   `json:"uid"`
	GIDs        []uint32 `json:"gids"`
	TrustedHost bool     `json:"trusted_host"`
	Admin       bool     `json:"admin,omitempty"`
	// Join makes the row a token: its key may do nothing but what Join says.
	Join     *Join        `json:"join,omitempty"`
	Revision ids.Revision `json:"revision"`
}

// Join is what the key of a token may do: add one node at a site, once, and
// remove its own row with that.
type Join struct {
	Site ids.Site `json:"site"`
	// ExpiresNS is until when, in nanoseconds since 1970.
	ExpiresNS int64 `json:"expires_ns"`
}

// Check returns what is wrong with whom a user acts as, as a phrase that says
// what to do; empty: nothing.
func (u User) Check() string {
	switch {
	case u.Join != nil:
		return "the key is that of a token, which only adds a node: use a user's key"
	case u.TrustedHost:
		return ""
	case u.UID == 0:
		return "the user has no uid, or 0, which is root's: give it its own uid, or set trusted_host if all of its machine may be trusted"
	case len(u.GIDs) == 0:
		return "the user has no gids: give it at least its primary group, or set trusted_host if all of its machine may be trusted"
	}
	return ""
}
