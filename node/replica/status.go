package replica

import (
	"math"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// Next returns the serial that the next proposal of a slice gets, and the time
// that its own must be above.
func (n *Node) Next(s ids.Slice) (ids.Serial, hlc.Time) {
	g := n.groups[s]
	if g == nil {
		return 0, 0
	}
	return g.log.last + 1, g.log.time
}

// Until returns until when this node may acknowledge, read and grant sessions
// for a slice; not at all if that is not after now.
func (n *Node) Until(s ids.Slice) Time {
	g := n.groups[s]
	if g == nil || g.phase != phaseLead {
		return math.MinInt64
	}
	return g.leaseUntil()
}

// Retain returns the first serial that a driver which reads back keeps in its
// journal, whatever its limits say. A normal member may still need the entries
// after it, and its own epoch must be known then (Restored.BaseEpoch). Earlier
// entries are kept for members that are away, within bounds of bytes and age.
// A driver that answers no Read need not keep it: entries that are not applied
// everywhere stay in memory, and a member that misses older ones gets the
// state.
func (n *Node) Retain(s ids.Slice) ids.Serial {
	g := n.groups[s]
	if g == nil {
		return 0
	}
	return min(g.onAllNormal, g.applied)
}

// Awaits reports whether an entry counts for this node, in its log or applied,
// and its chunks are not all on its disk: it was not cut off, and no state took
// its place.
func (n *Node) Awaits(s ids.Slice, serial ids.Serial, epoch ids.Epoch) bool {
	g := n.groups[s]
	return g != nil && slices.Contains(g.unheld, EntryID{serial, epoch})
}

// Snapshot describes a slice's state at the last serial in Outputs.Applied.
func (n *Node) Snapshot(s ids.Slice) (Snapshot, bool) {
	g := n.groups[s]
	if g == nil || g.incomplete {
		return Snapshot{}, false
	}
	return g.snapshot(), true
}

// Applied names the last entry in Outputs.Applied; false where the state is not
// whole.
func (n *Node) Applied(s ids.Slice) (EntryID, bool) {
	g := n.groups[s]
	if g == nil || g.incomplete {
		return EntryID{}, false
	}
	return EntryID{Serial: g.applied, Epoch: g.appliedEpoch}, true
}

// MayGive reports whether others may copy a slice's state from here. The row
// must count on this copy, and nothing may be known to be missing. A member
// with another data directory than the row's has an empty copy that looks
// whole; a copy of that would replace a better one.
func (n *Node) MayGive(s ids.Slice) bool {
	g := n.groups[s]
	if g == nil || g.incomplete || g.diverged || g.self < 0 {
		return false
	}
	return g.members[g.self].incarnation == n.c.Incarnation && !g.lacksEntries()
}

// Unused reports whether nothing with data was ever ordered in a slice, as far
// as its log goes back: then its state is rightly empty. A state that was lost
// has a log that says otherwise. What precedes the log can hold one no-op for
// each epoch and the clients' registrations.
func (n *Node) Unused(s ids.Slice) bool {
	g := n.groups[s]
	if g == nil || g.hasData || g.incomplete || g.clients.answered() || uint64(g.log.base) > uint64(g.log.baseEpoch)+uint64(len(g.clients.byID)) {
		return false
	}
	for serial := g.applied + 1; serial <= g.log.last; serial++ {
		if e := g.log.get(serial); e == nil || len(e.Data) > 0 {
			return false
		}
	}
	return true
}

// Status is a slice's state for reports.
type Status struct {
	Row      *geoconfig.SliceRow
	Role     RoleKind
	Last     ids.Serial
	Commit   ids.Serial
	Until    Time
	Swapping bool
	Muted    bool           // the row is not on this disk yet: nothing is sent under it
	Members  []MemberStatus // as the active sees them; none elsewhere
	Lacking  int            // entries whose chunks are not all on this disk
	Whole    bool           // the copy has all that it was given: no transfer is unfinished, and it differs from no other
	LastTime hlc.Time       // time of the entry Last; 0: there is none
	Heard    Time           // when the active was last heard here, or the row learned; now where this node acts
}

// MemberStatus is what the active knows of a member.
type MemberStatus struct {
	Node  ids.Node
	State geoconfig.MemberState
	Match ids.Serial // on its disk and equal to the active's
	Heard Time       // when the last beacon that it answered was sent
}

// Status tells where a slice stands.
func (n *Node) Status(s ids.Slice) (Status, bool) {
	g := n.groups[s]
	if g == nil {
		return Status{}, false
	}
	st := Status{Row: g.row, Role: g.role(), Last: g.log.last, Commit: g.commit, Until: n.Until(s), Swapping: g.swap != nil, Lacking: len(g.unheld), Whole: !g.incomplete && !g.diverged, Muted: g.isMute(), LastTime: g.log.time, Heard: g.waitFrom}
	if g.isActing() {
		st.Heard = n.now
		for i := range g.members {
			m := &g.members[i]
			v := MemberStatus{Node: m.node, State: m.state, Match: m.match, Heard: m.willingAt}
			if m.peer == nil {
				v.Match, v.Heard = g.durable, n.now
			}
			st.Members = append(st.Members, v)
		}
	}
	return st, true
}

// Unapplied calls fn for the entries of all slices that are in this node's log and not
// in Outputs.Applied. It is false where not all of them are in memory, or where the state
// of a slice is not whole that this node is a member of: then what is needed here is not
// known.
func (n *Node) Unapplied(fn func(*Entry)) bool {
	for _, g := range n.groups {
		if g.self < 0 {
			continue // its copy is void
		}
		if g.incomplete {
			return false
		}
		for s := g.applied + 1; s <= g.log.last; s++ {
			e := g.log.get(s)
			if e == nil {
				return false
			}
			fn(e)
		}
	}
	return true
}

// AppliedTime returns the time of the last entry of a slice in Outputs.Applied, 0 for
// none.
func (n *Node) AppliedTime(s ids.Slice) hlc.Time {
	if g := n.groups[s]; g != nil {
		return g.appliedTime
	}
	return 0
}
