package replica

import geoconfig "cartwheel.dev/geo-config"

// hearLeases is for how many leases nobody asked for an acknowledgement below
// all when a takeover need no longer hear several members. To record that again
// costs the next one who asks a swap.
const hearLeases = 20

// tickMembers looks after the members: one swap at a time takes out who is
// silent, brings back who answers again, and makes equal juniors normal.
func (g *group) tickMembers() {
	if g.swap != nil || g.handover != nil || g.isMute() {
		return
	}
	if g.dropSilent() || g.phase != phaseLead || g.leaseUntil() <= g.n.now {
		return
	}
	for i := range g.members {
		m := &g.members[i]
		g.tickLastStep(m)
		if g.isEqual(m) {
			row := g.nextRow()
			setState(&row, m.node, geoconfig.Normal)
			g.proposeRow(row, "member.normal")
			return
		}
		if g.hasReturned(m) {
			g.takeBackMember(m)
			return
		}
	}
	if g.row.Hear > 1 && g.n.now-g.belowAllAt > hearLeases*g.n.c.Lease {
		row := g.nextRow()
		if g.lowerQuorum(&row); row.Hear == 0 {
			g.proposeRow(row, "slice.hear")
		}
	}
}

// isSilent reports whether a standby answered no beacon for a lease, made no
// progress on its oldest operation for one, lost its disk or some of it, or says
// that it is leaving.
func (g *group) isSilent(m *member) bool {
	if m.hasOtherDisk() || m.isLeaving() || m.regain > 0 {
		return true
	}
	now, lease := g.n.now, g.n.c.Lease
	if now-max(m.leaseFrom, m.stateSince, g.graceFrom) > lease && !g.isReachable(m) {
		return true
	}
	waiting := m.behind || !m.confirmed || (m.next > m.match+1)
	return waiting && now-max(m.progressAt, m.stateSince, g.graceFrom) > lease
}

// isReachable reports whether a member would promise just now.
func (g *group) isReachable(m *member) bool {
	return m.confirmed && !m.hasOtherDisk() && g.n.now-m.willingAt <= g.n.c.Lease/2
}

// dropSilent takes a silent standby out, if those that can be counted on
// afterwards are enough; an equal junior takes its place if there is one.
// Where they are not enough the active stops: its lease has ended, it excepts
// the slice, and the others may take over.
func (g *group) dropSilent() bool {
	var drop *member
	sound := 1
	for i := range g.members {
		m := &g.members[i]
		if m.peer == nil || m.state != geoconfig.Normal {
			continue
		}
		if g.isSilent(m) {
			if drop == nil {
				drop = m
			}
		} else if g.isReachable(m) {
			sound++
		}
	}
	if drop == nil || !g.hasTakeoverQuorum() || g.lacksEntries() {
		return false
	}
	row := g.nextRow()
	setState(&row, drop.node, geoconfig.Failed)
	why := "member.failed"
	if drop.isLeaving() {
		why = "member.left"
	}
	if g.row.Policy.Level >= 3 && sound < 2 {
		j := g.findEqualJunior()
		if j == nil {
			return g.recallSubstitute()
		}
		setState(&row, j.node, geoconfig.Normal)
		why = "member.replaced"
	}
	if g.lowerQuorum(&row); !enough(&row) {
		return false // if it is for the others to get what was acknowledged below all, they will
	}
	return g.proposeRow(row, why)
}

func (g *group) findEqualJunior() *member {
	for i := range g.members {
		if m := &g.members[i]; g.isEqual(m) {
			return m
		}
	}
	return nil
}

// recallSubstitute takes a failed member back that answers, so that it can take
// the place of a silent one. The active has no lease then, and needs none: what
// it knows to be acknowledged is all there is, or another one has taken over and
// the swap fails.
func (g *group) recallSubstitute() bool {
	if g.phase == phaseRecover {
		return false
	}
	for i := range g.members {
		if m := &g.members[i]; g.hasReturned(m) {
			return g.takeBackMember(m)
		}
	}
	return false
}

// takeBackMember makes a failed member a junior.
func (g *group) takeBackMember(m *member) bool {
	row := g.nextRow()
	back := geoconfig.Member{Node: m.node, State: geoconfig.Recovering, Incarnation: m.incarnation}
	if m.hasOtherDisk() {
		back.State, back.Incarnation = geoconfig.Migrating, m.peer.incarnation
	}
	setMember(&row, back)
	return g.proposeRow(row, "member.returned")
}

// isEqual reports whether a junior holds everything acknowledged, so that the
// swap that makes it normal may be sent.
func (g *group) isEqual(m *member) bool {
	return g.isFollowing(m) && g.isSteady(m.peer) && m.match >= g.commit && m.match >= g.noopSerial
}

// isSteady reports whether a peer has answered without a gap for so long that
// others may wait for it again.
func (g *group) isSteady(p *peer) bool { return g.n.now-p.steadyFrom >= g.n.c.Lease/2 }

// isFollowing reports whether a junior takes what is new, and lacks nothing older.
func (g *group) isFollowing(m *member) bool {
	return m.peer != nil && m.state.Junior() && g.phase >= phaseSync && g.isReachable(m) && !m.incomplete && !m.behind
}

// hasReturned reports whether a failed member has answered more than one beacon
// without a gap. Nobody waits for a junior: it catches up while it proves itself
// steady. It stays out for two leases at least, so that a bad link does not make
// the row change all the time; one that left by its own word comes back in its
// next life, as soon as that has answered so.
func (g *group) hasReturned(m *member) bool {
	if m.peer == nil || m.isLeaving() || (m.state != geoconfig.Failed && !(m.state.Junior() && m.hasOtherDisk())) {
		return false
	}
	p, now, lease := m.peer, g.n.now, g.n.c.Lease
	return p.answered > 0 && now-p.answeredAt < lease/2 && now-p.steadyFrom >= g.n.c.BeaconEvery && (now-m.stateSince >= 2*lease || m.leavingBoot != 0)
}
