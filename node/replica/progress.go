package replica

import "cartwheel.dev/geo-config/ids"

// feedState says how the active goes on with a member.
type feedState uint8

const (
	// feedProbe: the member's life is not known to have this epoch. It gets
	// probes with the row, at most one each Config.ResendAfter, and no entries.
	feedProbe feedState = iota
	// feedBehind: the log here does not reach back to what the member needs, or
	// the member diverged. It gets Behind, and no entries.
	feedBehind
	// feedEntries: the member gets entries from next on, as far as inFlight
	// allows.
	feedEntries
)

// feedState returns the state of a member: confirmMember ends feedProbe,
// unconfirm begins it, fallBehind and catchUp lead to and from feedBehind.
func (m *member) feedState() feedState {
	switch {
	case !m.confirmed:
		return feedProbe
	case m.behind:
		return feedBehind
	}
	return feedEntries
}

// progress is how much of the log a member has, and what it was sent.
//
// Invariant: match < next; inFlight is never negative, and 0 where next follows
// match; an incomplete member has match 0; match < regain, or regain is 0.
type progress struct {
	// match is the highest serial that is on its disk and equal to this log.
	match ids.Serial
	lag
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

// lag is how far a member's chunks are behind its entries.
//
// Invariant: whole <= match; outside of slices with a time to coherence they are equal.
type lag struct {
	// whole is the highest serial up to which it has all chunks of this active's term.
	whole ids.Serial
	// strays: it lacks chunks of entries that were ordered before this term; since
	// straysAt.
	strays   bool
	straysAt Time
	// markSerial was the log's last serial at markedAt, when the member had all
	// chunks up to the mark before. So no chunk that it lacks is older than the two
	// marks' distance and the time since.
	markSerial ids.Serial
	markedAt   Time
	// wholeAt is when whole rose last.
	wholeAt Time
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

// acknowledge notes that a member has everything up to a serial on its disk. A
// serial above the last of the log here is of an older message, and void.
func (p *progress) acknowledge(serial, last ids.Serial, now Time) {
	if serial > p.match && serial <= last {
		if outstanding := int(p.next - 1 - p.match); outstanding > 0 {
			p.inFlight -= int(int64(p.inFlight) * int64(min(int(serial-p.match), outstanding)) / int64(outstanding))
		}
		p.match, p.progressAt = serial, now
		if p.match >= p.regain {
			p.regain = 0
		}
	}
	if p.next <= p.match {
		p.next = p.match + 1
	}
	if p.next == p.match+1 {
		p.inFlight = 0
	}
}

// loseMatch notes that a new life of a member has less than its earlier life
// acknowledged. The member counts as silent until it has regained that.
func (p *progress) loseMatch(match ids.Serial) {
	p.regain = max(p.regain, p.match)
	p.match, p.whole = match, min(p.whole, match)
}

// isCurrent reports whether an acknowledgement was sent after the last transfer
// that its sender began. A higher count voids what was acknowledged before.
func (p *progress) isCurrent(resets uint64) bool {
	if resets > p.resetCount {
		p.resetCount, p.match, p.whole = resets, 0, 0
	}
	return resets == p.resetCount
}

// setIncomplete notes whether a member is getting the state. Until it has all of
// it, nothing that it has counts.
func (p *progress) setIncomplete(incomplete bool) {
	p.incomplete = incomplete
	if incomplete {
		p.match, p.whole = 0, 0
	}
}

// fallBehind notes that the entries here are of no use to a member.
func (p *progress) fallBehind() { p.behind = true }

// catchUp notes that they are of use again.
func (p *progress) catchUp() { p.behind = false }

// resendFrom goes back to a serial, after entries were lost on their way.
func (p *progress) resendFrom(next ids.Serial, now Time) {
	p.next, p.inFlight = max(next, p.match+1), 0
	p.resentFrom, p.resentAt = p.next, now
}

// hasResent reports whether what a member says it lacks was sent again so
// recently that it may still be on its way.
func (p *progress) hasResent(lacks ids.Serial, now, within Time) bool {
	return p.resentFrom <= lacks && p.next > lacks && p.resentAt != 0 && now-p.resentAt < within
}

// arrived notes that an incomplete member has received everything up to a
// serial. That frees room in flight, and no more.
func (p *progress) arrived(upTo ids.Serial) {
	switch sent := p.next - 1; {
	case upTo >= sent:
		p.inFlight = 0
	case upTo > p.received && p.received < sent:
		p.inFlight -= int(int64(p.inFlight) * int64(upTo-p.received) / int64(sent-p.received))
	}
	p.received = upTo
}

// void forgets what a member has: it failed, and starts anew if it returns. Its
// next is set by unconfirm.
func (p *progress) void() {
	p.match, p.regain, p.behind, p.incomplete = 0, 0, false, false
	p.lag = lag{}
}

// promise notes that a member would give its lease, by its answer to the beacon
// sent at a time.
func (l *lease) promise(sent Time) { l.willingAt = max(l.willingAt, sent) }

// renew counts the member's lease from a time on.
func (l *lease) renew(from Time) { l.leaseFrom = max(l.leaseFrom, from) }

// hear takes a member's last entry from its first answer in this activeship, or
// from a later one while its state was being transferred.
func (t *tail) hear(a *Message) {
	if !t.tailHeard || t.tailVoid {
		t.tailHeard, t.tailSerial, t.tailEpoch = true, a.Prev, a.PrevEpoch
		t.tailVoid = a.Flags&FlagIncomplete != 0
	}
}

// noteWhole notes up to where a member has the chunks too.
func (p *progress) noteWhole(a *Message, now Time) {
	if whole := min(a.Serial, p.match); whole > p.whole {
		p.whole, p.wholeAt = whole, now
	}
	strays := a.Flags&FlagStrays != 0
	if strays && !p.strays {
		p.straysAt = now
	}
	p.strays = strays
}
