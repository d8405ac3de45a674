package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// onBehind handles the active's word that this junior's missed operations are
// gone.
func (g *group) onBehind(from ids.Node, m *Message) {
	if from != g.row.Active || g.phase == phaseStandby && !g.awaitsState(m) || g.phase != phaseJunior {
		return
	}
	if m.Flags&FlagDiverged != 0 && !g.incomplete && g.log.epochAt(m.Commit) == m.CommitEpoch {
		g.diverged = true // the entry that the active means is still here
	}
	if g.transferBegun && g.log.last < m.Serial {
		g.transferBegun = false // the entries that its rows need are gone: it begins anew
		return
	}
	ahead := m.Serial < g.log.base // its state, once copied, holds more than the active's log begins with
	if g.transferBegun || (!g.incomplete && !g.diverged && (ahead || g.log.has(m.Serial) && g.log.epochAt(m.Serial) == m.SerialEpoch)) {
		// An old message, or other entries follow the active's base.
		if !g.transferBegun && m.Serial >= g.commit {
			g.cutLog(m.Serial + 1)
		}
		g.sendMismatch(from, 0)
		return
	}
	g.transferNeeded = true
	g.tickJunior()
}

// awaitsState reports whether a normal member must get the state although the
// row counts on it. The active cannot feed it any more, and would have taken
// it out within a lease if enough members were left.
func (f *following) awaitsState(m *Message) bool {
	if m.Flags&FlagDiverged != 0 {
		return false
	}
	if f.behindSince == 0 {
		f.behindSince = f.n.now
	}
	if f.n.now-f.behindSince <= 2*f.n.c.Lease {
		return false
	}
	f.phase = phaseJunior
	f.publishRole()
	return true
}

// tickJunior asks for a state transfer where one is needed, and again after
// each failure.
func (g *group) tickJunior() {
	if g.n.now-g.waitFrom > g.n.c.Wait {
		g.announceRow()
	}
	if !g.transferNeeded && !g.incomplete || g.transferAsked || g.n.now < g.transferNotBefore {
		return
	}
	t := Transfer{Slice: g.id, Row: g.row, Diverged: g.diverged}
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil && m.state == geoconfig.Normal && m.node != g.row.Active {
			t.Sources = append(t.Sources, m.node)
		}
	}
	if g.row.Active != g.n.c.Self {
		t.Sources = append(t.Sources, g.row.Active)
	}
	if len(t.Sources) == 0 {
		return
	}
	g.transferAsked = true
	g.n.out.Transfers = append(g.n.out.Transfers, t)
}

// TransferBegun says that a source began to give its state, at a serial, and
// with the clients' table of then. Entries after it are wanted from now on; they
// are journaled, and applied as far as TransferHold lets them be. False: no
// transfer is wanted any more, nothing may be changed, and TransferFailed is due.
func (n *Node) TransferBegun(now Time, s ids.Slice, base Snapshot) (wanted bool, err error) {
	n.step(now)
	g := n.groups[s]
	if g == nil || g.phase != phaseJunior || !g.transferAsked {
		return false, nil
	}
	g.voidCopy(base.Serial, base.Epoch, base.Time)
	if err := g.clients.decode(base.Clients); err != nil {
		return false, err
	}
	g.transferBegun, g.applyLimit = true, 0
	g.applied, g.appliedEpoch, g.appliedTime = base.Serial, base.Epoch, base.Time
	g.markDirty()
	return true, nil
}

// TransferHold has the entries up to a serial applied, and no later ones until
// the next call, while a transfer is under way: those that are applied already
// stay so. It returns the serial of the last one.
func (n *Node) TransferHold(now Time, s ids.Slice, upTo ids.Serial) ids.Serial {
	n.step(now)
	g := n.groups[s]
	if g == nil || !g.transferBegun {
		return 0
	}
	g.applyLimit = upTo
	g.applyUpTo(g.commit)
	g.markDirty()
	return g.applied
}

// TransferReady reports whether what a slice had may be thrown away, after
// TransferBegun: a crash would find on disk that it is void.
func (n *Node) TransferReady(s ids.Slice) bool {
	g := n.groups[s]
	return g != nil && g.transferBegun && g.resetRecord <= n.persisted
}

// TransferDone says that the state is on disk, chunks and all, with every entry
// that was applied by some moment after the transfer began from base.
func (n *Node) TransferDone(now Time, s ids.Slice, base Snapshot) {
	n.step(now)
	g := n.groups[s]
	if g == nil || !g.transferBegun || base.Serial != g.log.base || base.Epoch != g.log.baseEpoch {
		if g != nil && !g.transferBegun {
			g.transferAsked = false
		}
		return // overtaken by a newer transfer
	}
	g.incomplete, g.transferBegun, g.transferNeeded, g.transferAsked = false, false, false, false
	g.delayedBytes = 0
	g.rowRecord = n.record(&g.common, Record{Kind: RecordComplete, Base: g.applied, BaseEpoch: g.appliedEpoch, BaseTime: g.appliedTime})
	g.ackDue, g.ackedTo, g.loggedTo = true, 0, 0
	g.rejoin()
	g.followActive()
}

// TransferFailed says that the transfer ended without; it is asked for again.
func (n *Node) TransferFailed(now Time, s ids.Slice) {
	n.step(now)
	if g := n.groups[s]; g != nil {
		g.transferAsked, g.transferBegun = false, false
		g.transferNotBefore = n.now + n.c.SwapRetry
	}
}
