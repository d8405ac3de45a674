// Package geoconfig is the shared vocabulary of Cartwheel (typed IDs, sites,
// nodes, slices, policies, epochs) and the contract of the store that holds
// the cluster's configuration. It does no I/O and imports the standard library
// only; the stores live in the packages below it. All its types are plain
// values: share them by copy.
package geoconfig

import (
	"fmt"
	"time"
)

// ClusterID names one cluster; a node refuses data and peers of another.
type ClusterID string

// SiteName names a place with its own failures.
type SiteName string

// NodeID names a storage node: its libp2p peer ID in text form.
type NodeID string

// Short returns the end of the ID, for people: peer IDs all begin alike.
func (n NodeID) Short() string { return string(n[max(len(n)-8, 0):]) }

// UserName names a principal of the roster.
type UserName string

// SliceID numbers a slice; 24 bits are used, 0 is no slice.
type SliceID uint32

// ObjectID numbers an object and is its inode number too: the slice in the
// high 24 bits, the number inside the slice in the low 40. It never changes
// and is never used again. 0 is no object.
type ObjectID uint64

// Epoch numbers the configurations of one slice; every change of members or
// states raises it.
type Epoch uint64

// Serial numbers the operations of one slice in the order that its actives
// gave them; the first is 1.
type Serial uint64

// Revision numbers the changes of the whole configuration, across all rows.
type Revision uint64

// Incarnation tells apart the lives of one node's data directory: a wiped disk
// comes back with a higher one.
type Incarnation uint64

// Generation tells a rebuilt configuration store from the one it replaced.
type Generation uint64

const (
	// SliceBits is the number of high bits of an ObjectID that name the slice.
	SliceBits = 24
	// NumberBits is the number of low bits that number the object in its slice.
	NumberBits = 64 - SliceBits
	// RootSlice holds the root of the tree.
	RootSlice SliceID = 1
	// MaxSlice is the highest slice ID.
	MaxSlice SliceID = 1<<SliceBits - 1
	// RootObject is the directory at the top of the tree.
	RootObject = ObjectID(uint64(RootSlice)<<NumberBits | 1)
)

// NewObjectID joins a slice and a number inside it.
func NewObjectID(s SliceID, number uint64) ObjectID {
	return ObjectID(uint64(s)<<NumberBits | number&(1<<NumberBits-1))
}

// Slice returns the slice that the object belongs to.
func (o ObjectID) Slice() SliceID { return SliceID(o >> NumberBits) }

// Number returns the object's number inside its slice.
func (o ObjectID) Number() uint64 { return uint64(o) & (1<<NumberBits - 1) }

func (o ObjectID) String() string { return fmt.Sprintf("%d.%d", o.Slice(), o.Number()) }

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
	Home SiteName `json:"home"`
	// Level is the number of replicas, at least 1.
	Level int `json:"level"`
	// Sites is the number of different sites that the replicas are spread
	// over, 1 to Level; 0 means as many as there are, up to Level.
	Sites int  `json:"sites"`
	Kind  Kind `json:"kind"`
	// Coherence is how long the standbys may lag behind; 0 means not at all.
	Coherence time.Duration `json:"coherence_ns"`
}

// DefaultLevel is the number of replicas where no cue says otherwise.
const DefaultLevel = 3

// Member is one node's part in a slice.
type Member struct {
	Node        NodeID      `json:"node"`
	State       MemberState `json:"state"`
	Incarnation Incarnation `json:"incarnation"`
}

// SliceRow is one entry of the slice table.
type SliceRow struct {
	ID     SliceID `json:"id"`
	Policy Policy  `json:"policy"`
	Epoch  Epoch   `json:"epoch"`
	Active NodeID  `json:"active"`
	// Members lists every member once, the active among them.
	Members []Member `json:"members"`
	// Hear is h of docs/design.md, 4.5: how many normal members a takeover must
	// hear, itself among them, before it swaps; 0 and 1 mean itself alone.
	Hear int `json:"hear"`
	// Closed slices take no new objects.
	Closed     bool       `json:"closed"`
	Generation Generation `json:"generation"`
	// Revision is when the row last changed; the store sets it.
	Revision Revision `json:"revision"`
}

// Clone returns a copy that shares nothing with r.
func (r SliceRow) Clone() SliceRow {
	r.Members = append([]Member(nil), r.Members...)
	return r
}

// Member returns the part that a node has in the slice.
func (r SliceRow) Member(n NodeID) (Member, bool) {
	for _, m := range r.Members {
		if m.Node == n {
			return m, true
		}
	}
	return Member{}, false
}

// Normals returns the nodes in state N, the active among them, in row order.
func (r SliceRow) Normals() []NodeID {
	var out []NodeID
	for _, m := range r.Members {
		if m.State == Normal {
			out = append(out, m.Node)
		}
	}
	return out
}

// Site is a row of the sites' table.
type Site struct {
	Name     SiteName `json:"name"`
	Location string   `json:"location,omitempty"`
	Revision Revision `json:"revision"`
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
	ID            NodeID      `json:"id"`
	Site          SiteName    `json:"site"`
	Addresses     []string    `json:"addresses"` // multiaddresses, the best first
	Coordinate    Coordinate  `json:"coordinate"`
	CapacityBytes int64       `json:"capacity_bytes"`
	UsedBytes     int64       `json:"used_bytes"`
	Incarnation   Incarnation `json:"incarnation"`
	Version       string      `json:"version"`
	// Together lists nodes of other sites that this one measured so near that
	// they fail with it, Apart nodes of its own site that it measured far away.
	Together []NodeID `json:"together,omitempty"`
	Apart    []NodeID `json:"apart,omitempty"`
	Revision Revision `json:"revision"`
}

// User is a row of the users' table: a public key acts as one uid, unless the
// row marks a trusted host, which may act as any. Only a trusted host's row may
// have uid 0 or no gids. An admin may order what changes the cluster.
type User struct {
	Name        UserName `json:"name"`
	Key         string   `json:"key"` // peer ID text of the user's public key
	UID         uint32   `json:"uid"`
	GIDs        []uint32 `json:"gids"`
	TrustedHost bool     `json:"trusted_host"`
	Admin       bool     `json:"admin,omitempty"`
	Revision    Revision `json:"revision"`
}

// Check returns what is wrong with whom a user acts as, as a phrase that says
// what to do; empty: nothing.
func (u User) Check() string {
	switch {
	case u.TrustedHost:
		return ""
	case u.UID == 0:
		return "the user has no uid, or 0, which is root's: give it its own uid, or set trusted_host if all of its machine may be trusted"
	case len(u.GIDs) == 0:
		return "the user has no gids: give it at least its primary group, or set trusted_host if all of its machine may be trusted"
	}
	return ""
}
