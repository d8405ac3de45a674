package replica

// tickLastStep begins the last step of a junior that has what the log had a
// moment ago. It ends a last step that took too long.
func (l *leading) tickLastStep(m *member) {
	step, now, lease := &m.lastStep, l.n.now, l.n.c.Lease
	if !l.isFollowing(m) {
		*step = lastStep{notBefore: step.notBefore}
		return
	}
	if step.mark > 0 && m.whole >= step.mark {
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

// lastSteps reports whether any junior is in its last step.
func (l *leading) lastSteps() bool {
	for i := range l.members {
		if l.inLastStep(&l.members[i]) {
			return true
		}
	}
	return false
}

// isFollowing reports whether a junior takes new entries and lacks no older
// ones.
func (l *leading) isFollowing(m *member) bool {
	return m.peer != nil && m.state.Junior() && l.phase >= phaseSync && l.isReachable(m) && !m.incomplete && !m.behind
}
