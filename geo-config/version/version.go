// Package version says which version of Cartwheel a program is. The build sets
// it, for all programs at once. It is constant while a program runs, and so good
// for use by many goroutines.
package version

import "runtime/debug"

// Feature levels are what a whole cluster must know before anybody uses it. A node
// tells the highest one that its program knows, and the cluster's row has the
// one that is switched on: the lowest of all nodes that ever started.
const (
	// Draining has nodes left, and lets surplus members of slices go.
	Draining = 1
	// WideCoordinates has frames that carry coordinates of eight dimensions. A node
	// sends them to each peer whose program knows this level, without waiting for
	// the cluster.
	WideCoordinates = 2
	// SharedReads has nodes bring chunks for the clients of their site. A client
	// asks each node whose program knows this level, without waiting for the
	// cluster.
	SharedReads = 3
	// SideLogs has nodes take writes below .EventualConsistency while the active is
	// away. A client sends them to each node whose program knows this level, and an
	// active that knows it merges them, without waiting for the cluster.
	SideLogs = 4
	// Budgets has nodes keep to the budgets between sites.
	Budgets = 5
	// PendingCreates has standbys keep creates beside the active, which remembers what it
	// refuses of them. A client sends creates so where the programs of all normal members
	// know this level, without waiting for the cluster.
	PendingCreates = 6
	// MergedVersions has records of files say what of side logs was merged into them. A
	// node has an active note that where all members of the slice know this level.
	MergedVersions = 7
	// Forgetting has entries that remove versions which nothing retains. A node proposes
	// them where all members of the slice know this level.
	Forgetting = 8
	// MovedNames has merges of side logs say which files live on that lost a name to
	// another one. A node tells that where all members of the slice know this level.
	MovedNames = 9
	// Snapshots has entries and rows of slices that tell which times snapshots keep.
	// Snapshots are made once the whole cluster knows this level.
	Snapshots = 10
	// Schedules has nodes make snapshots again and again. Schedules are made once the
	// whole cluster knows this level.
	Schedules = 11
	// Parts has snapshots of a part of the tree. They are made once the whole cluster knows
	// this level.
	Parts = 12
	// Feature is the highest level that this program knows.
	Feature = Parts
)

// set is what the build says; empty: it said nothing.
var set string

// String returns the version: what the build said, else that of the module that
// the program was built from, else "development".
func String() string {
	if set != "" {
		return set
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "development"
}
