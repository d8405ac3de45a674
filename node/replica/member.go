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

	progress
	lease
	tail
}

// progress is how much of the log a member has, and what it was sent. A member
// is in one of three states:
//
//   - not confirmed: its life is not known to have this epoch. It gets probes
//     with the row, at most one each ResendAfter, and no entries.
//   - behind: confirmed, but the log here does not reach back to what it needs,
//     or it diverged. It gets Behind, and no entries.
//   - fed: it gets entries from next on, as far as inFlight allows.
//
// Invariant: match < next; inFlight >= 0; an incomplete member has match 0.
type progress struct {
	// match is the highest serial that is on its disk and equal to this log.
	match ids.Serial
	// next is the first serial that it was not sent.
	next     ids.Serial
	inFlight int // bytes that it was sent and has not acknowledged
	// resentFrom is where sending last went back to, at resentAt.
	resentFrom ids.Serial
	resentAt   Time
	sentAt     Time // the last append; 0: the next one is due at once
	// progressAt is when match rose, or nothing was outstanding.
	progressAt Time
	probeDue   bool // the next message asks for an answer
	// resetCount counts the transfers that it began in its present life. What it
	// said before the last is void.
	resetCount  uint64
	knownCommit ids.Serial // what it knows to be committed
	// incomplete: it is getting the state. received is what had arrived there.
	incomplete bool
	received   ids.Serial
	// behind: its missed operations are gone, or it diverged.
	behind bool
	// divergedThere: it committed an entry that is not here, namely this one.
	divergedThere  bool
	divergedSerial ids.Serial
	divergedEpoch  ids.Epoch
	// regain is what an earlier life of it acknowledged and its present one
	// lacks; 0: nothing.
	regain ids.Serial
}

// lease is a member's promise not to take over.
//
// Invariant: leaseFrom and willingAt are never later than now.
type lease struct {
	// confirmed: this life of the peer has told that it has this epoch. Answers
	// to beacons up to confirmedAfter do not count.
	confirmed      bool
	confirmedAfter uint64
	leaseFrom      Time // the promise counts from here; 0: there is none
	// willingAt is when the last beacon was sent that it answered without
	// excepting this slice.
	willingAt Time
}

// tail is a member's last entry when it first spoke in this activeship.
type tail struct {
	tailHeard  bool
	tailVoid   bool // its state is being transferred: the tail counts for nothing
	tailSerial ids.Serial
	tailEpoch  ids.Epoch
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

// unconfirm begins anew with a member whose epoch is not known: it is probed
// from what it is known to have.
func (m *member) unconfirm(now Time) {
	m.confirmed, m.progressAt = false, now
	m.next, m.inFlight = m.match+1, 0
	m.sentAt = 0
}

// arrived notes that a member has received everything up to a serial, which says
// how much is still on its way, and no more.
func (m *progress) arrived(upTo ids.Serial) {
	switch sent := m.next - 1; {
	case upTo >= sent:
		m.inFlight = 0
	case upTo > m.received && m.received < sent:
		m.inFlight -= int(int64(m.inFlight) * int64(upTo-m.received) / int64(sent-m.received))
	}
	m.received = upTo
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
