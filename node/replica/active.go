package replica

import (
	geoconfig "cartwheel.dev/geo-config"
)

// advancePhase moves an active on to the furthest phase that it can reach.
func (g *group) advancePhase() {
	if g.phase == phaseRecover && (!g.mustAdopt || g.adoptLongest()) {
		g.phase = phaseSync
		g.noopSerial, g.leading.term = g.log.last+1, g.row.Epoch
		e := &Entry{Slice: g.id, Serial: g.noopSerial, Epoch: g.row.Epoch, Time: g.log.time + 1}
		for i := range g.members {
			g.members[i].probeDue = true
		}
		g.uncommitted += e.cost()
		g.storeEntry(e)
	}
	if g.phase == phaseSync && g.commit >= g.noopSerial && g.applied == g.commit && g.leaseUntil() > g.n.now {
		g.phase = phaseLead
		g.leaseEnd = g.leaseUntil()
		g.n.event(&g.common, "leading", g.n.c.Self)
		g.publishRole()
	}
	if g.phase == phaseLead {
		g.advanceHandover()
		g.raiseQuorum()
	}
}

// tickActive resends, sends a new commit serial to all, and looks after the
// members.
func (l *leading) tickActive() {
	l.markDirty()
	for i := range l.members {
		m := &l.members[i]
		l.markLag(m)
		if m.peer == nil || m.state == geoconfig.Failed || !m.confirmed || m.behind || l.phase == phaseRecover {
			continue
		}
		late := l.n.now-max(m.sentAt, m.progressAt) >= l.n.c.ResendAfter
		// A junior is probed even where nothing is in flight, so that a lost
		// message does not leave it behind.
		if late && (m.next > m.match+1 || m.state.Junior() || m.knownCommit < l.stable) {
			m.probeDue = true
		} else if l.sentStable < l.stable && m.next > l.log.last && !l.isMute() {
			l.newAppend(m, m.next-1)
		}
	}
	l.sentStable = l.stable
	if l.phase != phaseRecover || l.mustAdopt {
		l.tickMembers()
	}
	l.noteRenewal() // where no standby must promise anything, time alone renews
	l.advanceCommit()
}
