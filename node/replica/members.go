package replica

import geoconfig "cartwheel.dev/geo-config"

// hearLeases is a number of leases. If no operation asked for an
// acknowledgement below all for so long, a takeover need no longer hear
// several members. To record it again costs the next such operation a swap.
const hearLeases = 20

// tickMembers looks after the members, with one swap at a time. It takes
// silent members out, takes members back that answer again, and makes equal
// juniors normal.
func (l *leading) tickMembers() {
	l.tellLate()
	if l.swap != nil || l.handover != nil || l.isMute() {
		return
	}
	if l.dropSilent() || l.phase != phaseLead || l.leaseUntil() <= l.n.now {
		return
	}
	for i := range l.members {
		m := &l.members[i]
		l.tickLastStep(m)
		if l.isEqual(m) {
			row := l.nextRow()
			setState(&row, m.node, geoconfig.Normal)
			l.proposeRow(row, "member.normal")
			return
		}
		if l.hasReturned(m) {
			l.takeBackMember(m)
			return
		}
	}
	if l.row.Hear > 1 && l.n.now-l.belowAllAt > hearLeases*l.n.c.Lease {
		row := l.nextRow()
		if l.lowerQuorum(&row); row.Hear == 0 {
			l.proposeRow(row, "slice.hear")
		}
	}
}

// tellAfter is after how many leases it is told why a junior is not normal yet, and again.
const tellAfter = 20

// tellLate tells of juniors that are not normal yet, for people who wait for them.
func (l *leading) tellLate() {
	for i := range l.members {
		m := &l.members[i]
		if m.peer == nil || !m.state.Junior() || l.n.now-max(m.stateSince, m.toldAt) < tellAfter*l.n.c.Lease {
			continue
		}
		m.toldAt = l.n.now
		l.n.event(l.common, "not normal yet: "+l.whyJunior(m), m.node)
	}
}

// whyJunior says why a junior is not normal yet.
func (l *leading) whyJunior(m *member) string {
	switch {
	case l.swap != nil:
		return "the row is being changed"
	case l.phase != phaseLead || l.handover != nil || l.isMute():
		return "the active does not lead just now"
	case !l.isReachable(m) || !l.isSteady(m.peer):
		return "it does not answer in time"
	case m.incomplete || m.behind:
		return "its state is not whole"
	case m.match < l.log.last:
		return "it lacks entries"
	case !l.hasAll(m):
		return "it lacks content"
	}
	return "it could be at once"
}

// isSilent reports whether a standby is to be taken out. It answered no beacon
// for a lease, made no progress on its oldest operation for one, lost some of
// its disk, or is leaving.
func (l *leading) isSilent(m *member) bool {
	if m.hasOtherDisk() || m.isLeaving() || m.regain > 0 {
		return true
	}
	now, lease := l.n.now, l.n.c.Lease
	if now-max(m.leaseFrom, m.stateSince, l.graceFrom) > lease && !l.isReachable(m) {
		return true
	}
	if l.isStuck(m) {
		return true
	}
	waiting := m.behind || !m.confirmed || (m.next > m.match+1)
	return waiting && now-max(m.progressAt, m.stateSince, l.graceFrom) > lease
}

// dropSilent takes a silent standby out if the remaining sound members are
// enough. An equal junior takes its place, if there is one. Where too few
// would remain, the active stops: its lease has ended, it excepts the slice,
// and the others may take over.
func (l *leading) dropSilent() bool {
	var drop *member
	sound := 1
	for i := range l.members {
		m := &l.members[i]
		if m.peer == nil || m.state != geoconfig.Normal {
			continue
		}
		if l.isSilent(m) {
			if drop == nil {
				drop = m
			}
		} else if l.isReachable(m) {
			sound++
		}
	}
	if drop == nil || !l.hasTakeoverQuorum() || l.lacksEntries() {
		return false
	}
	row := l.nextRow()
	setState(&row, drop.node, geoconfig.Failed)
	why := "member.failed"
	if drop.isLeaving() {
		why = "member.left"
	}
	if l.row.Policy.Level >= 3 && sound < 2 {
		j := l.findEqualJunior()
		if j == nil {
			return l.recallSubstitute()
		}
		setState(&row, j.node, geoconfig.Normal)
		why = "member.replaced"
	}
	if l.lowerQuorum(&row); !Enough(&row) {
		return false // the others take over if they have what was acknowledged below all
	}
	return l.proposeRow(row, why)
}

func (l *leading) findEqualJunior() *member {
	for i := range l.members {
		if m := &l.members[i]; l.isEqual(m) {
			return m
		}
	}
	return nil
}

// recallSubstitute takes a failed member back that answers, so that it can
// replace a silent one. The active has no lease then, and needs none. If
// another member has taken over meanwhile, the swap fails. Otherwise the
// active knows of everything that was acknowledged.
func (l *leading) recallSubstitute() bool {
	if l.phase == phaseRecover {
		return false
	}
	for i := range l.members {
		if m := &l.members[i]; l.hasReturned(m) {
			return l.takeBackMember(m)
		}
	}
	return false
}

// takeBackMember makes a failed member a junior.
func (l *leading) takeBackMember(m *member) bool {
	row := l.nextRow()
	back := geoconfig.Member{Node: m.node, State: geoconfig.Recovering, Incarnation: m.incarnation}
	if m.hasOtherDisk() {
		back.State, back.Incarnation = geoconfig.Migrating, m.peer.incarnation
	}
	setMember(&row, back)
	return l.proposeRow(row, "member.returned")
}

// isEqual reports whether a junior holds everything acknowledged, so that the
// active may send the swap that makes it normal.
func (l *leading) isEqual(m *member) bool {
	return l.isFollowing(m) && l.isSteady(m.peer) && l.hasAll(m) && m.match >= max(l.said, l.noopSerial)
}

// hasReturned reports whether a failed member has answered more than one
// beacon without a gap. A junior may prove itself while it catches up, since
// no operation waits for it. A failed member stays out for two leases at
// least, so that a bad link does not change the row all the time. A member
// that left by its own word comes back in its next life, as soon as that
// answers so.
func (l *leading) hasReturned(m *member) bool {
	if m.peer == nil || m.isLeaving() || (m.state != geoconfig.Failed && !(m.state.Junior() && m.hasOtherDisk())) {
		return false
	}
	p, now, lease := m.peer, l.n.now, l.n.c.Lease
	return p.answered > 0 && now-p.answeredAt < lease/2 && now-p.steadyFrom >= l.n.c.BeaconEvery && (now-m.stateSince >= 2*lease || m.leavingBoot != 0)
}
