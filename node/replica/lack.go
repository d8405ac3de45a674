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
func (c *common) lacksEntries() bool {
	l := &c.lack
	if l.serial > 0 && (l.serial < c.log.base || l.serial <= c.durable && c.log.epochAt(l.serial) == l.epoch) {
		*l = lack{}
	}
	return l.serial > 0
}

// noteCommon takes what another member says all normal ones have. This node,
// if it is normal, has acknowledged it.
func (c *common) noteCommon(m *Message) {
	if m.Serial > c.commonSerial {
		c.commonSerial, c.commonEpoch = m.Serial, m.SerialEpoch
	}
	if c.self < 0 || c.members[c.self].state != geoconfig.Normal || c.incomplete || m.Serial < c.log.base ||
		m.Serial <= c.lack.serial || c.log.epochAt(m.Serial) == m.SerialEpoch {
		return
	}
	if c.lack.serial == 0 {
		c.n.event(c, "has less than it acknowledged", c.n.c.Self)
	}
	c.lack.noteSerial(c.n.now, m.Serial, m.SerialEpoch)
}

// tickCompare asks the other normal members what all have, in a life that found
// the slice on its disk: that disk may lack what an earlier life acknowledged.
func (c *common) tickCompare() {
	now, config := c.n.now, &c.n.c
	if !c.fromDisk || now > config.Start+2*config.Wait || c.isMute() || c.compareAskedAt > 0 && now-c.compareAskedAt < config.ResendAfter || config.Bugs.TakesOverAlone {
		return
	}
	c.compareAskedAt = now
	for i := range c.members {
		if m := &c.members[i]; m.peer != nil && m.state == geoconfig.Normal && !m.hasCompared {
			c.sendQuery(m)
		}
	}
}

// rejoin makes a normal member that was getting the state one again.
func (l *leading) rejoin() {
	if l.phase != phaseJunior || l.self < 0 || l.incomplete || l.transferAsked {
		return
	}
	switch p := l.phaseByRow(); p {
	case phaseStandby:
		l.phase, l.transferNeeded = p, false
		l.publishRole()
	case phaseRecover:
		for i := range l.members {
			m := &l.members[i]
			m.tailHeard, m.tailVoid = false, false
			m.unconfirm(l.n.now)
		}
		l.mustAdopt, l.transferNeeded = true, false
		l.beginRecovery()
		l.publishRole()
	}
}
