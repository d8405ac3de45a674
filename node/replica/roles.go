package replica

import "cartwheel.dev/geo-config/ids"

// leading is what an active keeps, from phaseRecover on. newTerm empties it.
//
// Invariant: outside of an active's phases nothing is proposed or waited for.
type leading struct {
	*common
	proposals
	earlyAnswers
	levels
	// mustAdopt: others may hold what was acknowledged and is not here.
	mustAdopt bool
	// noopSerial is that of the first entry of this epoch, which commits all
	// before it; 0: not ordered yet.
	noopSerial ids.Serial
	term       ids.Epoch  // of that entry
	sentStable ids.Serial // the stable serial that all members were sent
	leaseEnd   Time       // the latest end of a lease that was acted upon
}

// proposals are the operations that were ordered and are not answered.
//
// Invariant: waiting is ascending and all of it is above the commit serial, as
// are the retries.
type proposals struct {
	uncommitted int // bytes of the entries above the commit serial, never negative
	inflight    map[operation]ids.Serial
	waiting     []waiter
	retries     []waiter // of operations that are in flight
}

// earlyProposal is a proposal that gets an Early.
type earlyProposal struct {
	waiter
	after ids.Serial // not before this is committed
}

// earlyAnswers are what an active says of entries before they are committed.
//
// Invariant: said <= log.last.
type earlyAnswers struct {
	asked []earlyProposal // ascending
	// said is the highest serial that an Early was given for. A junior that becomes
	// normal has it, since it keeps nothing apart.
	said ids.Serial
}

// operation names a client's operation.
type operation struct{ client, number uint64 }

// waiter is a proposal that gets its reply when its serial is committed.
type waiter struct {
	serial ids.Serial
	token  uint64
}

// levels is what an active knows of acknowledgements below all, which fewer
// than all normal members gave.
type levels struct {
	belowAllMax ids.Serial // the highest serial committed so, or that may have been before
	belowAllAt  Time       // when one was last seen that not all members had
	// wantedQuorum is how many members a takeover must hear before more can be
	// acknowledged so; 0: the row says it already.
	wantedQuorum int
}

// following is what a standby or a junior keeps about its active. setRow
// empties it, but for waitFrom and leaveSentAt.
//
// Invariant: ackedTo <= matched <= log.last, and both are 0 where no message of
// the active has shown yet that the two logs agree.
type following struct {
	*common
	// waitFrom is when the active was last heard, or the row was learned. The
	// wait before a takeover counts from here.
	waitFrom     Time
	leader       ids.Node   // the sender of the last append
	leaderBoot   uint64     // its life that showed to have this epoch; 0: none
	matched      ids.Serial // up to here this log equals the active's, in this epoch
	leaderCommit ids.Serial // the active's commit serial, as it said
	ackedTo      ids.Serial // acknowledged in this epoch
	loggedTo     ids.Serial // likewise, without the chunks
	term         ids.Epoch  // in which the active became it, as it said; 0: not said
	ackDue       bool       // the next acknowledgement is sent even if it is no news
	leaveSentAt  Time       // when an acknowledgement last said that this node is leaving
	verified     bool       // the active's log was compared with this one in this epoch
	mismatchDue  bool       // a Mismatch is to be sent when the row is on disk
	behindSince  Time       // since when a normal member is told that it is behind; 0: it is not
}

// takeover is what a standby keeps while its active is silent.
type takeover struct {
	*common
	candidate *candidate // nil: the active is heard
	// announcedAt is when the others were last sent the row.
	announcedAt Time
}

// candidate is a standby's attempt to take over. It asks the others for their
// tails shortly before the standby's promise ends.
type candidate struct {
	since   Time
	askedAt Time // when the others were last asked; 0: never
	// answered are the other normal members that have answered, each once.
	answered []ids.Node
	longerAt Time // when a member that has more than this node answered first; 0: none
}
