package names

import "cartwheel.dev/geo-config/ids"

// maxMissed bounds the objects of which it is known one by one that a change was
// missed.
const maxMissed = 4096

// missed is of changes by operations of our own that the cache does not hold: an
// active asks nobody to give up what it changed itself, so the answer to a read
// that was sent before such a change looks as good as one that was sent after it.
// Where the cache has the change, it sees by its number which one is older. Where
// it has not, it must not take the answer. The Cache's mutex guards it.
type missed struct {
	at  map[ids.Object]uint64 // the Cache's turn when it was missed
	all uint64                // of any object that is not in at
}

// miss notes that attributes of an object were changed, or may have been, and are
// not kept.
func (c *Cache) miss(o ids.Object) {
	c.turn++
	if len(c.missed.at) >= maxMissed {
		c.missed.at, c.missed.all = nil, c.turn
	}
	if c.missed.at == nil {
		c.missed.at = map[ids.Object]uint64{}
	}
	c.missed.at[o] = c.turn
}

// missAll is miss for every object.
func (c *Cache) missAll() {
	c.turn++
	c.missed.at, c.missed.all = nil, c.turn
}

// outdated reports whether attributes that were asked for at the mark may be
// older than a change that was missed.
func (c *Cache) outdated(o ids.Object, m *Mark) bool {
	return m.turn < max(c.missed.all, c.missed.at[o])
}

// MarkChange is MarkObject for an operation that changes the object's attributes.
func (c *Cache) MarkChange(o ids.Object) Mark {
	m := c.MarkObject(o)
	m.changes = true
	return m
}
