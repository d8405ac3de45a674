package replica

import (
	geoconfig "cartwheel.dev/geo-config"
)

// lacksEntries reports whether this member still lacks something that it
// acknowledged.
func (c *common) lacksEntries() bool {
	l := &c.lack
	if l.serial > 0 && (l.serial < c.log.base || l.serial <= c.durable && c.log.epochAt(l.serial) == l.epoch) {
		*l = lack{}
	}
	return l.serial > 0
}

// noteCommon takes the serial that, as another member says, all normal members
// have. If this node is normal and does not have it, its disk has lost it.
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

// tickCompare asks the other normal members what all of them have. A life that
// found the slice on its disk needs to know, since the disk may lack what an
// earlier life acknowledged.
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

func (c *common) sendQuery(m *member) { c.describeLog(c.newMessage(m.node, Query)) }
