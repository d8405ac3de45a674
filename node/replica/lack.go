package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// lack is what this member is known to have acknowledged, or to need, and does
// not have: its disk went back to an older state. As long as it lacks it, it is
// no candidate.
type lack struct {
	serial ids.Serial // 0: nothing
	epoch  ids.Epoch
	since  Time
}

func (l *lack) noteSerial(now Time, serial ids.Serial, epoch ids.Epoch) {
	if l.serial == 0 {
		l.since = now
	}
	if serial > l.serial {
		l.serial, l.epoch = serial, epoch
	}
}

// lacksEntries reports whether this member still lacks something.
func (g *group) lacksEntries() bool {
	l := &g.lack
	if l.serial > 0 && (l.serial < g.log.base || l.serial <= g.durable && g.log.epochAt(l.serial) == l.epoch) {
		*l = lack{}
	}
	return l.serial > 0
}

// noteCommon takes what another member says all normal ones have. This node,
// if it is normal, has acknowledged it.
func (g *group) noteCommon(m *Message) {
	if m.Serial > g.commonSerial {
		g.commonSerial, g.commonEpoch = m.Serial, m.SerialEpoch
	}
	if g.self < 0 || g.members[g.self].state != geoconfig.Normal || g.incomplete || m.Serial < g.log.base ||
		m.Serial <= g.lack.serial || g.log.epochAt(m.Serial) == m.SerialEpoch {
		return
	}
	if g.lack.serial == 0 {
		g.n.event(g, "has less than it acknowledged", g.n.c.Self)
	}
	g.lack.noteSerial(g.n.now, m.Serial, m.SerialEpoch)
}

// tickCompare asks the other normal members what all have, in a life that found
// the slice on its disk: that disk may lack what an earlier life acknowledged.
func (g *group) tickCompare() {
	now, c := g.n.now, &g.n.c
	if !g.fromDisk || now > c.Start+2*c.Wait || g.isMute() || g.compareAskedAt > 0 && now-g.compareAskedAt < c.ResendAfter || c.Bugs.TakesOverAlone {
		return
	}
	g.compareAskedAt = now
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil && m.state == geoconfig.Normal && !m.hasCompared {
			g.sendQuery(m)
		}
	}
}

// rejoin makes a normal member that was getting the state one again.
func (g *group) rejoin() {
	if g.phase != phaseJunior || g.self < 0 || g.incomplete || g.transferAsked {
		return
	}
	switch p := g.phaseByRow(); p {
	case phaseStandby:
		g.phase, g.transferNeeded = p, false
		g.publishRole()
	case phaseRecover:
		for i := range g.members {
			m := &g.members[i]
			m.tailHeard, m.tailVoid = false, false
			m.unconfirm(g.n.now)
		}
		g.mustAdopt, g.transferNeeded = true, false
		g.beginRecovery()
		g.publishRole()
	}
}
