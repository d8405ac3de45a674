package replica

import (
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// Propose asks for an entry. The reply comes in this or a later Outputs.
func (n *Node) Propose(now Time, p Proposal) {
	n.step(now)
	g := n.groups[p.Entry.Slice]
	if g == nil {
		n.reply(p, fault.NotActive)
		return
	}
	if kind := g.admitProposal(&p); kind != fault.None {
		n.reply(p, kind)
	}
}

func (n *Node) reply(p Proposal, kind fault.Kind) {
	n.out.Replies = append(n.out.Replies, Reply{Slice: p.Entry.Slice, Token: p.Token, Kind: kind})
}

// admitProposal orders an operation, or finds the one that it repeats. A kind
// other than None is the reply. Otherwise the reply was given or will be.
func (l *leading) admitProposal(p *Proposal) fault.Kind {
	switch {
	case l.phase < phaseQuiet:
		return fault.NotActive
	case l.phase != phaseLead || l.handover != nil || l.leaseUntil() <= l.n.now:
		return fault.Again
	}
	known, r := l.lookup(p.Entry.Client, p.Entry.Number, p.Entry.Time)
	switch known {
	case Done:
		r.Token = p.Token
		l.n.out.Replies = append(l.n.out.Replies, r)
		return fault.None
	case Pending:
		l.retries = append(l.retries, waiter{r.Serial, p.Token})
		return fault.None
	case Unregistered, Forgotten:
		return fault.Expired
	}
	if kind := l.checkProposal(&p.Entry); kind != fault.None {
		return kind
	}
	e := new(Entry)
	*e = p.Entry
	e.Serial, e.Epoch = l.log.last+1, l.row.Epoch
	if e.Client != 0 {
		if l.inflight == nil {
			l.inflight = map[operation]ids.Serial{}
		}
		l.inflight[operation{e.Client, e.Number}] = e.Serial
	}
	l.waiting = append(l.waiting, waiter{e.Serial, p.Token})
	if p.Early {
		l.asked = append(l.asked, earlyProposal{waiter{e.Serial, p.Token}, p.After})
	}
	l.uncommitted += e.cost()
	l.storeEntry(e)
	return fault.None
}

// checkProposal refuses an operation that cannot be ordered now, or at all.
func (l *leading) checkProposal(e *Entry) fault.Kind {
	limits := &l.n.c.Limits
	switch {
	case e.Serial != 0 && e.Serial != l.log.last+1, e.Time <= l.log.time, len(e.Chunks)%AddressSize != 0:
		return fault.Invalid
	case e.cost() > MaxEntryBytes:
		return fault.TooLarge
	case l.log.last-l.commit >= ids.Serial(limits.UncommittedEntries), l.uncommitted >= limits.UncommittedBytes:
		return fault.Overloaded
	}
	if e.Client == 0 {
		return fault.None
	}
	if e.Registers() {
		if l.clients.full(e.Time) {
			return fault.Overloaded
		}
		return fault.None
	}
	lowest := uint64(1)
	if c := l.findRegistered(e.Client, e.Time); c != nil {
		lowest = c.lowest
		if e.Number > e.Lowest && c.crowded(e.Lowest, limits.ClientBytes) {
			return fault.Overloaded
		}
	} else if !l.isRegistering(e.Client) {
		return fault.Expired
	}
	if e.Lowest > e.Number || e.Number >= max(lowest, e.Lowest)+uint64(limits.Results) {
		return fault.Invalid
	}
	return fault.None
}

// isRegistering reports whether a client's registration is ordered and not
// applied yet. Operations that are ordered after it count as registered.
func (l *leading) isRegistering(client uint64) bool {
	s, under := l.inflight[operation{client, 0}]
	return under && s > l.applied
}

// findRegistered returns a client's registration, if it will not have expired
// when the next entry is applied, which has the given time.
func (l *leading) findRegistered(id uint64, at hlc.Time) *client {
	c := l.clients.find(id, at)
	if c != nil || l.clients.byID[id] == nil {
		return c
	}
	// The time jumps, perhaps: here, or between entries that are not applied yet.
	limits, before, jumps := &l.n.c.Limits, l.appliedTime, hlc.Time(0)
	for s := l.applied + 1; s <= l.log.last; s++ {
		e := l.log.get(s)
		if e == nil {
			return nil
		}
		jumps += limits.jump(before, e.Time)
		before = e.Time
	}
	jumps += limits.jump(before, at)
	return l.clients.find(id, at-jumps)
}

// Outlasts reports whether a client's registration outlasts an operation of an
// age: then a client that is not registered never was, as far as that operation
// could tell, and the operation was never run.
func (n *Node) Outlasts(age time.Duration) bool { return n.c.Limits.outlasts(age) }

// Lookup says what is known of an operation, before it is evaluated at a time,
// which tells whether the client's registration has expired. For Done the reply
// is the first one's.
func (n *Node) Lookup(s ids.Slice, client, number uint64, at hlc.Time) (Known, Reply) {
	g := n.groups[s]
	if g == nil || g.phase != phaseLead {
		return Unseen, Reply{}
	}
	return g.lookup(client, number, at)
}

func (l *leading) lookup(client, number uint64, at hlc.Time) (Known, Reply) {
	if client == 0 {
		return Unseen, Reply{}
	}
	if s, under := l.inflight[operation{client, number}]; under {
		return Pending, Reply{Slice: l.id, Serial: s}
	}
	c := l.findRegistered(client, max(at, l.log.time))
	if number == 0 {
		if c == nil {
			return Unseen, Reply{}
		}
		return Done, Reply{Slice: l.id, Epoch: l.row.Epoch, Time: c.last}
	}
	switch {
	case c == nil && l.isRegistering(client):
		return Unseen, Reply{}
	case c == nil:
		return Unregistered, Reply{}
	case number < c.lowest:
		return Forgotten, Reply{}
	}
	if r := c.result(number); r != nil {
		return Done, Reply{Slice: l.id, Serial: r.serial, Epoch: r.epoch, Time: r.time, Result: r.bytes}
	}
	return Unseen, Reply{}
}

func (l *leading) answerWaiter(w waiter) {
	e := l.log.get(w.serial)
	if e == nil {
		l.n.out.Replies = append(l.n.out.Replies, Reply{Slice: l.id, Token: w.token, Kind: fault.TimedOut})
		return
	}
	delete(l.inflight, operation{e.Client, e.Number})
	l.n.out.Replies = append(l.n.out.Replies, Reply{Slice: l.id, Token: w.token, Serial: e.Serial, Epoch: e.Epoch,
		Time: e.Time, Result: e.Result})
}

// refuseWaiting answers every proposal that waits: the outcome is unknown.
func (l *leading) refuseWaiting() {
	for _, w := range append(l.waiting, l.retries...) {
		l.n.out.Replies = append(l.n.out.Replies, Reply{Slice: l.id, Token: w.token, Kind: fault.TimedOut})
	}
	l.waiting, l.retries, l.asked = nil, nil, nil
	l.inflight = nil
	l.uncommitted = 0
}
