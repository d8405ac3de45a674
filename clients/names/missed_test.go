package names

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// TestCache_ALateReadHidesNoChange answers a read that was sent before a change
// of our own, after the cache came to lack that change.
func TestCache_ALateReadHidesNoChange(t *testing.T) {
	changed := func(c *Cache, grants []*pb.Grant) {
		m := c.MarkChange(file)
		c.Learn(&m, "n", grants, func(l *Learner) { l.Attr(fileAttr(6), false) })
	}
	own := grant(file, pb.Grant_FILE)
	for name, lacks := range map[string]func(*Cache){
		"it came without a lease": func(c *Cache) { changed(c, nil) },
		"an operation's answer came without one": func(c *Cache) {
			m := c.Begin(dir, 0, file, "f")
			c.Learn(&m, "n", nil, func(l *Learner) { l.Attr(fileAttr(6), false) })
			c.End(&m)
		},
		"its outcome is not known": func(c *Cache) { c.Forget(file) },
		"it was dropped for want of room": func(c *Cache) {
			changed(c, own)
			c.limits.Objects = 1
			m := c.MarkObject(dir)
			c.Learn(&m, "n", nil, func(*Learner) {})
			c.limits.Objects = 0
			c.Learn(&m, "n", nil, func(*Learner) {})
			c.limits.Objects = 100
		},
		"all was dropped": func(c *Cache) { changed(c, own); c.Clear() },
		"a change that came late was not taken": func(c *Cache) {
			m := c.MarkChange(file)
			c.Forget(file)
			late := c.MarkObject(file)
			c.Learn(&m, "n", own, func(l *Learner) { l.Attr(fileAttr(6), false) })
			c.Learn(&late, "n", own, func(l *Learner) { l.Attr(fileAttr(5), false) })
		},
		"more were missed than are remembered": func(c *Cache) {
			changed(c, nil)
			for i := range uint64(2 * maxMissed) {
				c.Forget(ids.NewObject(2, i))
			}
		},
	} {
		c := New(&judge{}, Limits{Objects: 100})
		read := c.MarkObject(file)
		lacks(c)
		c.Learn(&read, "n", own, func(l *Learner) { l.Attr(fileAttr(5), false) })
		if a, _, ok := c.Attr(file); ok {
			t.Errorf("%s: the attributes as they were before it are served: change %d", name, a.Change)
		}
		again := c.MarkObject(file)
		c.Learn(&again, "n", own, func(l *Learner) { l.Attr(fileAttr(6), false) })
		if a, ok := c.Own(file); !ok || a.Change != 6 {
			t.Errorf("%s: a read since is not served: %v, %v", name, a, ok)
		}
	}
}

func TestCache_SaysWhatAChangeSuperseded(t *testing.T) {
	for name, grants := range map[string][]*pb.Grant{"kept": grant(file, pb.Grant_FILE), "not kept": nil} {
		c := New(&judge{}, Limits{})
		m := c.MarkChange(file)
		c.Learn(&m, "n", grants, func(l *Learner) { l.Attr(fileAttr(6), false) })
		if !c.Superseded(fileAttr(5)) {
			t.Errorf("%s: what was before the change is not superseded", name)
		}
		if c.Superseded(fileAttr(6)) || c.Superseded(fileAttr(7)) {
			t.Errorf("%s: what the change made, or a later one, is superseded", name)
		}
	}
}
