// Package invariant states what must hold at all times for acknowledged data
// to be safe, as checks that stay on in production. A check costs a comparison
// where it holds. Where it does not hold, this process no longer knows what its
// disk says: Check panics with a Violation, and Catch, at the boundary of
// whatever ran, turns that into the error that ends the node. What the turn
// would have sent, answered or written is dropped, so that nothing is
// acknowledged after a violation. The package is pure and keeps nothing; the
// functions may be called from any goroutine.
package invariant

import (
	"fmt"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// The rules, as their violations name them.
const (
	// SnapshotApplied: a snapshot's serial is the one that the rows beside it
	// are applied up to.
	SnapshotApplied = "the serial of a snapshot is the applied serial of its rows"
	// ApplyFollows: entries are applied without a gap.
	ApplyFollows = "the entries of a slice are applied one after the other"
	// JournalFollows: the journal has the entries of a slice without a gap.
	JournalFollows = "the entries of a slice in the journal follow each other"
	// FormatEmpty: only a slice whose log is empty is formatted.
	FormatEmpty = "only a slice without operations is formatted"
	// BaseApplied: the state has everything that the log follows.
	BaseApplied = "a slice's log begins at or before its applied serial"
	// AppliedCommitted: an entry that may still be replaced is not applied.
	AppliedCommitted = "only committed entries of a slice are applied"
	// CommittedLogged: what is committed is known.
	CommittedLogged = "the committed entries of a slice are in its log"
	// FinishDecided: an intent ends only after its outcome is decided.
	FinishDecided = "only a decided intent is finished"
)

// Violation says which rule was broken, where, and by what. Want and Got are
// what the rule compares: serials, mostly.
type Violation struct {
	Rule   string
	Slice  ids.Slice
	Serial ids.Serial // of the entry or state in hand
	File   string     // in the data directory, where the state lies
	Want   uint64
	Got    uint64
}

func (v *Violation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "invariant violated: %s: slice %d, serial %d: want %d, got %d", v.Rule, v.Slice, v.Serial, v.Want, v.Got)
	if v.File != "" {
		fmt.Fprintf(&b, ", in %s", v.File)
	}
	return b.String()
}

// Check panics with the violation unless ok.
func Check(ok bool, v Violation) {
	if !ok {
		fail(v)
	}
}

// fail is apart so that a check that holds puts nothing on the heap.
func fail(v Violation) { panic(&v) }

// Equal checks that two serials, or epochs, are equal: v.Want and v.Got.
func Equal(v Violation) { Check(v.Want == v.Got, v) }

// Fault is the error that ends the node: local state is corrupt.
func (v *Violation) Fault() error {
	return &fault.Error{Kind: fault.Corrupt, Op: "invariant.Check", Subject: fmt.Sprintf("slices/%d", v.Slice),
		Public: v.Error() + "; this process must not go on: keep its data directory for a report, and start the node again or restore it from its peers"}
}

// Catch, deferred, passes a violation to stop as an error. Other panics go on.
//
//	defer invariant.Catch(node.fail)
func Catch(stop func(error)) {
	switch r := recover().(type) {
	case nil:
	case *Violation:
		stop(r.Fault())
	default:
		panic(r)
	}
}
