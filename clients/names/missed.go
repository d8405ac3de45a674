package names

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// maxMissed bounds the objects of which it is known one by one that a change was
// missed.
const maxMissed = 4096

// missed records changes by this client's own operations that the cache does not
// hold. An active revokes no lease of the client that makes a change. So the
// answer to a read that was sent before the change looks as good as a later one.
// If the cache holds the change, its number shows which is older. If not, the
// cache must not take the answer. The Cache's mutex guards it.
type missed struct {
	at  map[ids.Object]missing
	all uint64 // the turn of any object that is not in at
}

// missing is one object's last change that was missed.
type missing struct {
	turn   uint64 // the Cache's when it was missed
	change uint64 // its number; 0: not known
}

// miss notes that attributes of an object were changed, or may have been, and are
// not kept; change is the number of the change, 0 where it is not known.
func (c *Cache) miss(o ids.Object, change uint64) {
	c.turn++
	if len(c.missed.at) >= maxMissed {
		c.missed.at, c.missed.all = nil, c.turn
	}
	if c.missed.at == nil {
		c.missed.at = map[ids.Object]missing{}
	}
	c.missed.at[o] = missing{c.turn, max(change, c.missed.at[o].change)}
}

// missAll is miss for every object.
func (c *Cache) missAll() {
	c.turn++
	c.missed.at, c.missed.all = nil, c.turn
}

// outdated reports whether attributes that were asked for at the mark may be
// older than a change that was missed.
func (c *Cache) outdated(o ids.Object, m *Mark) bool {
	return m.turn < max(c.missed.all, c.missed.at[o].turn)
}

// MarkChange is MarkObject for an operation that changes the object's attributes.
func (c *Cache) MarkChange(o ids.Object) Mark {
	m := c.MarkObject(o)
	m.changes = true
	return m
}

// Superseded reports whether an operation of this client made newer attributes
// than these, and was answered since they were asked for. A program that is shown
// the older ones misses its own write. After Forget, or of more than maxMissed
// objects, the cache may not know.
func (c *Cache) Superseded(a *pb.Attr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := ids.Object(a.Object)
	x := c.objects[o]
	return x != nil && x.attr.GetChange() > a.Change && c.left(x.cover) > 0 || c.missed.at[o].change > a.Change
}
