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
func (l *leading) tickLastStep(m *member) {
	step, now, lease := &m.lastStep, l.n.now, l.n.c.Lease
	if !l.isFollowing(m) {
		*step = lastStep{notBefore: step.notBefore}
		return
	}
	if step.mark > 0 && m.match >= step.mark {
		step.lag, step.mark = now-step.markAt, 0
	}
	if step.mark == 0 {
		step.mark, step.markAt = l.log.last, now
	}
	late := max(step.lag, now-step.markAt) > lease/4
	switch {
	case step.begun && !l.inLastStep(m):
		step.begun, step.notBefore = false, now+2*lease
		l.n.event(l.common, "too far behind to become normal yet", m.node)
	case !step.begun && step.lag > 0 && !late && now >= step.notBefore && l.isSteady(m.peer):
		step.begun, step.begunAt = true, now
	}
}

// inLastStep reports whether a junior's acknowledgement is required. What ends
// it must not wait for anything, not for a swap either.
func (c *common) inLastStep(m *member) bool {
	return m.lastStep.begun && c.n.now-m.lastStep.begunAt <= c.n.c.Lease/2
}

// lastSteps reports whether any junior is in its last step.
func (l *leading) lastSteps() bool {
	for i := range l.members {
		if l.inLastStep(&l.members[i]) {
			return true
		}
	}
	return false
}
