package replica

import (
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

// admitProposal orders an operation, or finds the one that it repeats. A kind other
// than None is the reply; otherwise the reply was given or will be.
func (g *group) admitProposal(p *Proposal) fault.Kind {
	switch {
	case g.phase < phaseQuiet:
		return fault.NotActive
	case g.phase != phaseLead || g.handover != nil || g.leaseUntil() <= g.n.now:
		return fault.Again
	}
	known, r := g.lookup(p.Entry.Client, p.Entry.Number, p.Entry.Time)
	switch known {
	case Done:
		r.Token = p.Token
		g.n.out.Replies = append(g.n.out.Replies, r)
		return fault.None
	case Pending:
		g.retries = append(g.retries, waiter{r.Serial, p.Token})
		return fault.None
	case Unregistered, Forgotten:
		return fault.Expired
	}
	if kind := g.checkProposal(&p.Entry); kind != fault.None {
		return kind
	}
	e := new(Entry)
	*e = p.Entry
	e.Serial, e.Epoch = g.log.last+1, g.row.Epoch
	if e.Client != 0 {
		if g.inflight == nil {
			g.inflight = map[operation]ids.Serial{}
		}
		g.inflight[operation{e.Client, e.Number}] = e.Serial
	}
	g.waiting = append(g.waiting, waiter{e.Serial, p.Token})
	g.uncommitted += e.cost()
	g.storeEntry(e)
	return fault.None
}

// checkProposal refuses what cannot be ordered now or at all.
func (g *group) checkProposal(e *Entry) fault.Kind {
	l := &g.n.c.Limits
	switch {
	case e.Serial != 0 && e.Serial != g.log.last+1, e.Time <= g.log.time, len(e.Chunks)%AddressSize != 0:
		return fault.Invalid
	case e.cost() > MaxEntryBytes:
		return fault.TooLarge
	case g.log.last-g.commit >= ids.Serial(l.UncommittedEntries), g.uncommitted >= l.UncommittedBytes:
		return fault.Overloaded
	}
	if e.Client == 0 {
		return fault.None
	}
	if e.Registers() {
		if g.clients.full(e.Time) {
			return fault.Overloaded
		}
		return fault.None
	}
	lowest := uint64(1)
	if c := g.findRegistered(e.Client, e.Time); c != nil {
		lowest = c.lowest
		if e.Number > e.Lowest && c.crowded(e.Lowest, l.ClientBytes) {
			return fault.Overloaded
		}
	} else if !g.isRegistering(e.Client) {
		return fault.Expired
	}
	if e.Lowest > e.Number || e.Number >= max(lowest, e.Lowest)+uint64(l.Results) {
		return fault.Invalid
	}
	return fault.None
}

// isRegistering reports whether a client's registration is ordered and not
// applied yet: operations behind it in the order are registered.
func (g *group) isRegistering(client uint64) bool {
	s, under := g.inflight[operation{client, 0}]
	return under && s > g.applied
}

// findRegistered returns a client's registration that will not have expired before
// an entry is applied that is ordered next, at a time.
func (g *group) findRegistered(id uint64, at hlc.Time) *client {
	c := g.clients.find(id, at)
	if c != nil || g.clients.byID[id] == nil {
		return c
	}
	// The time jumps, perhaps: here, or between entries that are not applied yet.
	l, before, jumps := &g.n.c.Limits, g.appliedTime, hlc.Time(0)
	for s := g.applied + 1; s <= g.log.last; s++ {
		e := g.log.get(s)
		if e == nil {
			return nil
		}
		jumps += l.jump(before, e.Time)
		before = e.Time
	}
	jumps += l.jump(before, at)
	return g.clients.find(id, at-jumps)
}

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

func (g *group) lookup(client, number uint64, at hlc.Time) (Known, Reply) {
	if client == 0 {
		return Unseen, Reply{}
	}
	if s, under := g.inflight[operation{client, number}]; under {
		return Pending, Reply{Slice: g.id, Serial: s}
	}
	c := g.findRegistered(client, max(at, g.log.time))
	if number == 0 {
		if c == nil {
			return Unseen, Reply{}
		}
		return Done, Reply{Slice: g.id, Epoch: g.row.Epoch, Time: c.last}
	}
	switch {
	case c == nil && g.isRegistering(client):
		return Unseen, Reply{}
	case c == nil:
		return Unregistered, Reply{}
	case number < c.lowest:
		return Forgotten, Reply{}
	}
	if r := c.result(number); r != nil {
		return Done, Reply{Slice: g.id, Serial: r.serial, Epoch: r.epoch, Time: r.time, Result: r.bytes}
	}
	return Unseen, Reply{}
}
