// Package ids holds the numbers and names by which the cluster's things are
// known: objects, slices, nodes, sites, and the counters that order their
// changes. Each has a type of its own, so that two of them cannot be taken for
// each other. The package imports the standard library only. All its types are
// plain values: share them by copy.
package ids

import "fmt"

// Cluster names one cluster; a node refuses data and peers of another.
type Cluster string

// Site names a place with its own failures.
type Site string

// Node names a storage node: its libp2p peer ID in text form.
type Node string

// Short returns the end of the ID, for people: peer IDs all begin alike.
func (n Node) Short() string { return string(n[max(len(n)-8, 0):]) }

// User names a principal of the roster.
type User string

// Slice numbers a slice; 24 bits are used, 0 is no slice.
type Slice uint32

// Object numbers an object and is its inode number too: the slice in the
// high 24 bits, the number inside the slice in the low 40. It never changes
// and is never used again. 0 is no object.
type Object uint64

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
	// SliceBits is the number of high bits of an Object that name the slice.
	SliceBits = 24
	// NumberBits is the number of low bits that number the object in its slice.
	NumberBits = 64 - SliceBits
	// RootSlice holds the root of the tree.
	RootSlice Slice = 1
	// MaxSlice is the highest slice ID.
	MaxSlice Slice = 1<<SliceBits - 1
	// RootObject is the directory at the top of the tree.
	RootObject = Object(uint64(RootSlice)<<NumberBits | 1)
)

// NewObject joins a slice and a number inside it.
func NewObject(s Slice, number uint64) Object {
	return Object(uint64(s)<<NumberBits | number&(1<<NumberBits-1))
}

// Slice returns the slice that the object belongs to.
func (o Object) Slice() Slice { return Slice(o >> NumberBits) }

// Number returns the object's number inside its slice.
func (o Object) Number() uint64 { return uint64(o) & (1<<NumberBits - 1) }

func (o Object) String() string { return fmt.Sprintf("%d.%d", o.Slice(), o.Number()) }
