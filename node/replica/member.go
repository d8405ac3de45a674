package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// member is what this node knows of another member, or of itself. Only the
// active's knowledge counts.
type member struct {
	peer        *peer // nil: this node itself
	node        ids.Node
	state       geoconfig.MemberState
	stateSince  Time
	incarnation ids.Incarnation // of the data directory that the row counts on
	// leavingBoot is the member's life that said it is leaving, since the member
	// was normal last; 0: none.
	leavingBoot uint64
	// hasCompared: it has told this life of this node what all normal members
	// have.
	hasCompared bool
	lastStep    lastStep
	toldAt      Time // when it was told last why the member is not normal

	progress
	lease
	tail
}

// isLeaving reports whether the member's present life is about to stop.
func (m *member) isLeaving() bool {
	return m.leavingBoot != 0 && m.peer != nil && m.leavingBoot == m.peer.boot
}

// hasOtherDisk reports whether the peer's data directory is not the one in the
// row.
func (m *member) hasOtherDisk() bool {
	return m.peer != nil && m.peer.incarnation != 0 && m.peer.incarnation != m.incarnation
}

// beginTerm forgets what a member promised and had under another active, whose
// log need not be this one.
func (m *member) beginTerm(now Time, last ids.Serial) {
	m.leaseFrom, m.willingAt, m.tailHeard, m.behind, m.regain = 0, 0, false, false, 0
	m.match, m.next, m.inFlight = 0, last+1, 0
	m.lag = lag{markedAt: now}
	m.lastStep = lastStep{}
	m.stateSince, m.progressAt = now, now
}

// unconfirm begins anew with a member whose epoch is not known: it is probed
// from what it is known to have.
func (m *member) unconfirm(now Time) {
	m.confirmed, m.progressAt = false, now
	m.next, m.inFlight = m.match+1, 0
	m.sentAt = 0
}

// lastStep makes a junior equal that follows, but is farther away than the
// standbys, which under steady load have always acknowledged more than it has:
// for a moment nothing is acknowledged that it lacks.
type lastStep struct {
	// mark was the log's last serial at markAt; lag is how long the junior took
	// to have what an earlier mark said, 0 unknown.
	mark      ids.Serial
	markAt    Time
	lag       Time
	begun     bool // its acknowledgement is required, for half a lease from
	begunAt   Time
	notBefore Time // not tried again before
}
