package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Restore brings back a slice that was found on disk; before the first input.
func (n *Node) Restore(now Time, r Restored) error {
	n.step(now)
	if n.groups[r.Row.ID] != nil || r.Row.ID == 0 {
		return fault.Errorf(fault.Invalid, "replica.Restore", "", "slice %d twice", r.Row.ID)
	}
	return n.newGroup(r.Row.ID).restore(r)
}

// Tick makes time pass.
func (n *Node) Tick(now Time) {
	n.step(now)
	suspended := n.now-n.ticked > max(n.c.Lease/2, 4*n.c.TickEvery)
	n.ticked = n.now
	for _, g := range n.order {
		if suspended {
			g.waitFrom, g.graceFrom = n.now, n.now
		}
		g.tick()
	}
	if n.now >= n.nextBeacon {
		n.nextBeacon = n.now + n.c.BeaconEvery
		for _, p := range n.lined {
			p.beaconDue = true
		}
	}
}

// Persisted says that all records up to a position are on disk.
func (n *Node) Persisted(now Time, upTo Position) {
	n.step(now)
	n.persisted = max(n.persisted, upTo)
	for p := n.pending.front(); p != nil && p.position <= upTo; p = n.pending.front() {
		g := n.groups[p.slice]
		if p.serial > g.durable && p.serial <= g.log.last && g.log.epochAt(p.serial) == p.epoch {
			g.durable = p.serial
			g.noteDurable()
		}
		g.markDirty()
		n.pending.pop()
	}
}

// Held says that all chunks of an entry are on this node's disk.
func (n *Node) Held(now Time, s ids.Slice, serial ids.Serial, epoch ids.Epoch) {
	n.step(now)
	if g := n.groups[s]; g != nil {
		g.noteHeld(EntryID{serial, epoch})
		g.markDirty()
	}
}

// Receive takes a message from a peer that the connection has authenticated.
// The message belongs to the core from now on.
func (n *Node) Receive(now Time, from ids.Node, m *Message) {
	n.step(now)
	if from == n.c.Self {
		return
	}
	switch m.Kind {
	case Beacon:
		n.onBeacon(n.peer(from), m)
	case Answer:
		n.onAnswer(n.peer(from), m)
	default:
		n.onSlice(from, m)
	}
}

// Learn brings a slice row from geo-config. The node keeps the row: the caller
// changes it no more.
func (n *Node) Learn(now Time, row *geoconfig.SliceRow) {
	n.step(now)
	n.learn(row)
}

func (n *Node) learn(row *geoconfig.SliceRow) *group {
	g := n.groups[row.ID]
	if g == nil {
		if _, in := row.Member(n.c.Self); !in || row.ID == 0 || row.Epoch == 0 {
			return nil
		}
		g = n.newGroup(row.ID)
	}
	g.setRow(row)
	return g
}

// PeerUp hints that a connection was made: what waits is sent again at once.
func (n *Node) PeerUp(now Time, peer ids.Node) {
	n.step(now)
	if p := n.peers[peer]; p != nil {
		p.beaconDue = true
		for _, s := range p.seats {
			s.group.members[s.index].sentAt = 0
			s.group.markDirty()
		}
	}
}

// PeerDown hints that a connection broke, so that messages in flight may be
// lost. A member is silent only after a lease, so the hint only makes the next
// message a probe.
func (n *Node) PeerDown(now Time, peer ids.Node) {
	n.step(now)
	if p := n.peers[peer]; p != nil {
		for _, s := range p.seats {
			s.group.members[s.index].probeDue = true
		}
	}
}

// Stuck says whether this node makes no progress; it then loses its slices.
func (n *Node) Stuck(now Time, stuck bool) {
	n.step(now)
	n.stuck = stuck
}

// SliceStuck says the same of one slice.
func (n *Node) SliceStuck(now Time, s ids.Slice, stuck bool) {
	n.step(now)
	if g := n.groups[s]; g != nil {
		g.stuck = stuck
	}
}

// Swapped tells how a Swap ended; row is what is in geo-config, for Won and Lost.
func (n *Node) Swapped(now Time, s Swap, o Outcome, row *geoconfig.SliceRow) {
	n.step(now)
	g := n.groups[s.Slice]
	if g == nil {
		return
	}
	if row != nil && (o == Won || o == Lost) {
		g.setRow(row)
	} else if o == Won {
		g.setRow(&s.After)
	}
	p := g.swap
	if p == nil || p.From != s.From || p.Attempt != s.Attempt {
		return
	}
	if o == Unknown {
		p.retryAt = n.now + n.c.SwapRetry
		return
	}
	// It was not applied and never will be.
	g.swap, g.candidate = nil, nil
	g.swapNotBefore = n.now + n.c.SwapRetry
	g.cancelHandover()
	g.advanceCommit()
	g.markDirty()
}

// ReadDone answers a Read: entries in order from Read.From on; none means that
// the journal does not have them any more.
func (n *Node) ReadDone(now Time, r Read, entries []*Entry) {
	n.step(now)
	g := n.groups[r.Slice]
	if g == nil || g.pendingRead != r {
		return
	}
	g.pendingRead.From = 0
	g.readBack = entries
	if len(entries) == 0 {
		g.log.rebase(min(r.To, g.applied))
		n.event(&g.common, "missed operations are gone", n.c.Self)
	}
	if g.isActing() {
		g.applyUpTo(g.commit)
	} else {
		g.followActive()
	}
	g.markDirty()
}

// Flush returns what is to be done for the inputs so far. It is where queued
// entries become messages, so that a batch of inputs makes one message.
func (n *Node) Flush(now Time) *Outputs {
	n.step(now)
	for i := 0; i < len(n.dirty); i++ {
		g := n.dirty[i]
		g.dirty = false
		whole := n.groups[g.id]
		whole.flush()
		g.checkOrder(g.id)
		if checksAll {
			whole.checkParts()
		}
	}
	n.dirty = n.dirty[:0]
	for _, p := range n.lined {
		if p.beaconDue {
			p.beaconDue = false
			n.beacon(p)
		}
	}
	n.trim()
	out := n.out
	if n.out == &n.two[0] {
		n.out = &n.two[1]
	} else {
		n.out = &n.two[0]
	}
	n.out.reset()
	return out
}

// trim gives up the oldest committed entries in memory beyond the limit.
func (n *Node) trim() {
	for n.keptBytes > n.c.Limits.KeepBytes {
		k := n.kept.front()
		if k == nil {
			return
		}
		if k.serial >= k.group.log.first && k.serial <= k.group.applied {
			k.group.log.forget(k.serial)
		}
		n.keptBytes -= k.cost
		n.kept.pop()
	}
}

// onSlice takes a message about one slice: first both sides get the same
// epoch, then it is looked at.
func (n *Node) onSlice(from ids.Node, m *Message) {
	g := n.groups[m.Slice]
	if m.Row != nil && m.Row.Epoch >= m.Epoch && (g == nil || m.Row.Epoch > g.row.Epoch) {
		g = n.learn(m.Row)
	}
	if g == nil {
		return
	}
	if m.Kind == Refuse || m.Kind == Row {
		g.onRefuse(from, m)
		return
	}
	if m.Epoch != g.row.Epoch && !n.c.Bugs.NoEpochCheck {
		// State matching: this node's row goes along, and the sender's comes
		// with its next message if it is the newer.
		g.sendRow(from, Refuse)
		return
	}
	if m.Epoch == g.row.Epoch {
		g.noteSameEpoch(from)
		if from == g.row.Active {
			g.leaderBoot = m.Boot
		}
	}
	g.dispatch(from, m)
}

func (g *group) dispatch(from ids.Node, m *Message) {
	switch m.Kind {
	case Append:
		g.onAppend(from, m)
	case Ack, Mismatch:
		g.onAck(from, m)
	case Query:
		g.onQuery(from)
	case Tail:
		g.onTail(from, m)
	case Fetch:
		g.onFetch(from, m)
	case Fetched:
		g.onFetched(from, m)
	case Behind:
		g.onBehind(from, m)
	case Offer:
		g.onOffer(from, m)
	case Taken:
		g.onTaken(from, m)
	}
	g.markDirty()
}

// tick makes time pass for one group.
func (g *group) tick() {
	switch g.phase {
	case phaseStandby:
		g.tickStandby()
	case phaseJunior:
		g.tickJunior()
	case phaseQuiet:
		g.tickQuiet()
	case phaseRecover, phaseSync, phaseLead:
		g.tickActive()
	}
	g.tickSwap()
	if g.pendingRead.From != 0 && g.n.now-g.readAskedAt > g.n.c.Lease {
		g.pendingRead.From = 0 // the driver forgot; the next need asks again
	}
}

// flush turns what is queued into messages.
func (g *group) flush() {
	if g.isMute() {
		return // Persisted touches the group again
	}
	if g.isActing() {
		g.advancePhase()
		for i := range g.members {
			g.feedMember(&g.members[i])
		}
		return
	}
	g.acknowledge()
}

// noteDurable is called when more entries are on this disk.
func (g *group) noteDurable() {
	if g.isActing() {
		g.advanceCommit()
		return
	}
	g.followActive()
}
