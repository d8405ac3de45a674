package replica

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// promises is what others may count on because this node said it.
type promises struct {
	// doubtedPeers may count on promises that this node gave in an earlier
	// epoch. They get none until they are known to have this epoch. Each is in
	// here once, and lists the group in peer.doubted.
	doubtedPeers []*peer
	wasActive    bool // in this life
	// quietUntil: the node does not act before, because of its own promises. It
	// counts in phaseQuiet alone.
	quietUntil Time
	// graceFrom: no member counts as silent before a lease after this.
	graceFrom Time
}

// history is the slice's order and state as they are here.
//
// Invariant: log.base <= applied <= commit <= log.last; stable <= commit;
// durable <= log.last.
type history struct {
	log entryLog
	// commit is the highest serial known to be committed.
	commit ids.Serial
	// stable is what a takeover cannot lose: commit less what was acknowledged
	// at level 1 alone. Members are told this.
	stable ids.Serial
	// onAllNormal is the highest serial known to be on the disks of all normal
	// members.
	onAllNormal ids.Serial
	// applied is the serial of the last entry in Outputs.Applied; appliedEpoch
	// and appliedTime are that entry's, unless the state is void.
	applied      ids.Serial
	appliedEpoch ids.Epoch
	appliedTime  hlc.Time
	durable      ids.Serial // the entries up to here are on this disk
	// unheld are the entries whose chunks are not on this disk, ascending.
	unheld  []EntryID
	clients clients
	hasData bool // an operation with data was applied
}

// reading is the read of the journal that is under way, and what the last one
// brought. There is at most one.
type reading struct {
	pendingRead Read // From is 0 if there is none
	readAskedAt Time
	readBack    []*Entry // in order, without a gap
}

// comparison is what other members say that this one acknowledged.
type comparison struct {
	// commonSerial is the highest serial that an active said all normal members
	// have on their disks. A normal member has it, unless it lost its disk.
	commonSerial ids.Serial
	commonEpoch  ids.Epoch
	// lack is what this disk turned out to have lost.
	lack           lack
	fromDisk       bool // an earlier life had the slice
	compareAskedAt Time // 0: not yet in this life
}

// lack is what this member is known to have acknowledged, or to need, and does
// not have: its disk went back to an older state. As long as it lacks it, it is
// no candidate.
type lack struct {
	serial ids.Serial // 0: nothing
	epoch  ids.Epoch
	since  Time
}

func (l *lack) noteSerial(now Time, serial ids.Serial, epoch ids.Epoch) {
	if l.serial == 0 {
		l.since = now
	}
	if serial > l.serial {
		l.serial, l.epoch = serial, epoch
	}
}

// copying is the state transfer that replaces the copy here.
//
// Invariant: a transfer that has begun is of an incomplete state; only an
// incomplete state has delayed entries.
type copying struct {
	// incomplete: the state at log.base is not here. Nothing is applied before
	// the transfer has begun.
	incomplete bool
	// diverged: this copy has committed what the group has not. It counts for
	// nothing until a transfer replaces it.
	diverged bool
	// resetCount counts the times that this life made its copy void.
	resetCount uint64
	// resetRecord is the record that says so. The driver may throw the old state
	// away once it is on disk.
	resetRecord   Position
	transferBegun bool // and its serial, log.base, is known
	// applyLimit is where a transfer waits for rows: no later entry is applied.
	applyLimit ids.Serial
	// delayedBytes are those of the entries that wait for rows, while a transfer
	// is under way.
	delayedBytes int
	// transferNeeded: the missed operations are gone. transferAsked: the driver
	// knows, and has not reported an end.
	transferNeeded, transferAsked bool
	transferNotBefore             Time
}

// holding is where a standby stands still for a moment, so that its state can be compared
// with another member's as of one serial. Nobody waits for it: what it acknowledges is what
// is on its disk, applied or not.
type holding struct {
	upTo  ids.Serial // no later entry is applied
	until Time       // before this; 0: nothing is held
}

// rowChange is the compare-and-swap of the row that this node has under way.
//
// Invariant: the pending swap starts from the row's epoch and makes the next.
type rowChange struct {
	swap          *pendingSwap // nil: none
	swapNotBefore Time
	attempts      uint64 // tells the swaps and hand-overs of this life apart
	// intentRecorded: the journal says that a swap of this epoch may have made
	// another member normal, so that this node may not be alone any more.
	intentRecorded bool
}

// pendingSwap is a compare-and-swap whose outcome is not known yet. While it
// is pending, either row may be in force.
type pendingSwap struct {
	Swap
	after   Position // sent once this record is on disk
	sent    bool
	retryAt Time
}

// succession is a hand-over, at either end.
type succession struct {
	handover *handover // under way at this node as the active; nil: none
	offer    offer     // what the active passed on to this standby; epoch 0: nothing
	// inheritedLeases is what the next RoleLeading carries; nil: nothing.
	inheritedLeases *Role
}

// yield is a planned hand-over under way at the old active.
type handover struct {
	to          ids.Node
	number      ids.Serial // tells attempts apart
	since       Time
	revokeAsked bool // the server revokes object leases
	stopped     bool // it has; this node does not act any more
	leases      []byte
	sentAt      Time
	offerTaken  bool
}

// offer is what an old active passed to its successor.
type offer struct {
	epoch  ids.Epoch
	number ids.Serial
	leases []byte
	at     Time
}
