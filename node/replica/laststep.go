package replica

import "cartwheel.dev/geo-config/ids"

// lastStep makes a junior equal that follows, but is farther away than the
// standbys, which under steady load have always acknowledged more than it has:
// for a moment nothing is acknowledged that it lacks.
type lastStep struct {
	// mark was the log's last serial at markAt; lag is how long the junior took
	// to have what an earlier mark said, 0 unknown.
	mark      ids.Serial
	markAt    Time
	lag       Time
	begun     bool // its acknowledgement is required, for half a lease from
	begunAt   Time
	notBefore Time // not tried again before
}

// tickLastStep begins the last step of a junior that has all that was there
// half a moment ago, and ends one that took too long.
func (g *group) tickLastStep(m *member) {
	l, now, lease := &m.lastStep, g.n.now, g.n.c.Lease
	if !g.isFollowing(m) {
		*l = lastStep{notBefore: l.notBefore}
		return
	}
	if l.mark > 0 && m.match >= l.mark {
		l.lag, l.mark = now-l.markAt, 0
	}
	if l.mark == 0 {
		l.mark, l.markAt = g.log.last, now
	}
	late := max(l.lag, now-l.markAt) > lease/4
	switch {
	case l.begun && !g.inLastStep(m):
		l.begun, l.notBefore = false, now+2*lease
		g.n.event(g, "too far behind to become normal yet", m.node)
	case !l.begun && l.lag > 0 && !late && now >= l.notBefore && g.isSteady(m.peer):
		l.begun, l.begunAt = true, now
	}
}

// inLastStep reports whether a junior's acknowledgement is required. What ends
// it must not wait for anything, not for a swap either.
func (g *group) inLastStep(m *member) bool {
	return m.lastStep.begun && g.n.now-m.lastStep.begunAt <= g.n.c.Lease/2
}

// lastSteps reports whether any junior is in its last step.
func (g *group) lastSteps() bool {
	for i := range g.members {
		if g.inLastStep(&g.members[i]) {
			return true
		}
	}
	return false
}
