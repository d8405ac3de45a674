package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// advanceCommit raises the commit serial. Everything up to it is on this disk,
// and on the disks of all required members or of as many as the operation
// asked for.
func (l *leading) advanceCommit() {
	if (l.phase != phaseSync && l.phase != phaseLead) || l.leaseUntil() <= l.n.now {
		return
	}
	all := l.ownReach()
	for i := range l.members {
		if m := &l.members[i]; m.peer != nil && (l.isRequired(m) || l.inLastStep(m)) {
			all = min(all, l.reach(m))
		}
	}
	l.onAllNormal = max(l.onAllNormal, all)
	if all > l.commonSerial {
		l.commonSerial, l.commonEpoch = all, l.log.epochAt(all)
	}
	c, stable := all, all
	if l.phase == phaseLead && l.swap == nil && !l.lastSteps() {
		c, stable = l.reachBelowAll(all)
	}
	if stable > l.stable {
		l.stable = stable
	}
	if c > l.commit {
		l.commitTo(c)
	}
	l.sayEarly()
	if l.phase == phaseSync && l.commit >= l.noopSerial {
		l.markDirty()
	}
}

// reachBelowAll finds how far the levels asked for reach beyond what all
// members have. The active may acknowledge up to c; a takeover will hear of
// everything up to stable.
func (l *leading) reachBelowAll(all ids.Serial) (c, stable ids.Serial) {
	c, stable = all, all
	n, have := l.normals(), l.ownReach()
	for s := max(all, l.commit) + 1; s <= have; s++ {
		e := l.log.get(s)
		if e == nil || e.Level == 0 || int(e.Level) >= n {
			break
		}
		q := int(e.Level)
		if q > 1 {
			l.belowAllAt = l.n.now
			if l.row.Hear < n-q+1 {
				l.wantedQuorum = max(l.wantedQuorum, n-q+1)
				l.markDirty()
				break
			}
			if l.countHolders(s) < q {
				break
			}
			stable = s
		}
		c = s
	}
	if c > all {
		l.belowAllMax = max(l.belowAllMax, c)
	}
	return c, stable
}

// countHolders counts the normal members that have an entry on disk, with this
// one.
func (l *leading) countHolders(s ids.Serial) int {
	k := 0
	for i := range l.members {
		m := &l.members[i]
		if m.state == geoconfig.Normal && (m.peer == nil || m.match >= s) {
			k++
		}
	}
	return k
}

// commitTo commits and applies the entries up to a serial, and answers their
// proposals.
func (l *leading) commitTo(c ids.Serial) {
	for s := l.commit + 1; s <= c; s++ {
		if e := l.log.get(s); e != nil {
			l.uncommitted = max(0, l.uncommitted-e.cost())
		}
	}
	l.commit = c
	l.applyUpTo(c)
	for len(l.waiting) > 0 && l.waiting[0].serial <= c {
		l.answerWaiter(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
	kept := l.retries[:0]
	for _, w := range l.retries {
		if w.serial <= c {
			l.answerWaiter(w)
		} else {
			kept = append(kept, w)
		}
	}
	l.retries = kept
	l.markDirty()
}

// noteRenewal acts on a longer lease, after a promise came in.
func (l *leading) noteRenewal() {
	until := l.leaseUntil()
	if !l.isActing() || until <= l.leaseEnd {
		return
	}
	l.leaseEnd = until
	if l.phase == phaseLead {
		l.n.out.Leases = append(l.n.out.Leases, Lease{l.id, l.row.Epoch, until})
	}
	l.advanceCommit()
}

// sayEarly answers the proposals that wait for an Early. While members may be about
// to change, none is given any more: a member that becomes normal would lack it.
func (l *leading) sayEarly() {
	if len(l.asked) == 0 {
		return
	}
	if l.phase != phaseLead || l.swap != nil || l.handover != nil || l.lastSteps() {
		l.asked = nil
		return
	}
	have, kept := l.heldSerial(), l.asked[:0]
	for _, p := range l.asked {
		e := l.log.get(p.serial)
		switch {
		case p.serial <= l.commit || e == nil || e.Epoch != l.row.Epoch:
			// Its reply came, or the row changed since the entry was ordered.
		case p.serial > have || p.after > l.commit:
			kept = append(kept, p)
		default:
			l.said = max(l.said, p.serial)
			l.n.out.Early = append(l.n.out.Early, Early{Slice: l.id, Token: p.token, Serial: e.Serial, Epoch: e.Epoch, Time: e.Time})
		}
	}
	l.asked = kept
}
