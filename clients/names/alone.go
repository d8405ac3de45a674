package names

import (
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Alone reports whether a directory is this client's alone and a name is known
// not to be there, and how long that stays so if nothing is heard.
func (c *Cache) Alone(dir ids.Object, name string) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alone(dir, name)
}

func (c *Cache) alone(dir ids.Object, name string) (time.Duration, bool) {
	d := c.dirs[dir]
	if d == nil {
		return 0, false
	}
	left := min(c.left(d.lease), c.left(d.alone))
	e, known := d.entries[name]
	return left, left > 0 && e.Object == 0 && (known || d.complete) && d.busy[name] == 0
}

// Make notes a new file, with all of its attributes, in a directory that is
// this client's alone, whose times move on. It refuses where Alone does.
func (c *Cache) Make(dir ids.Object, name string, attr *pb.Attr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.alone(dir, name); !ok {
		return false
	}
	d, o := c.dirs[dir], ids.Object(attr.Object)
	if d.entries == nil {
		d.entries = map[string]Entry{}
	}
	if _, there := d.entries[name]; !there {
		c.entries++
	}
	d.made++
	if x := c.objects[dir]; x != nil && x.attr != nil {
		now := proto.CloneOf(x.attr)
		now.MtimeNs, now.CtimeNs = attr.MtimeNs, attr.CtimeNs
		x.attr = now
	}
	d.entries[name] = Entry{Object: o, Type: attr.Mode & typeMask}
	c.objects[o] = &object{attr: attr, cover: d.lease, xattrs: true, born: d.alone}
	c.shrink()
	return true
}

// MarkNew is taken before a file that Make noted is told to its active.
func (c *Cache) MarkNew(dir, o ids.Object) Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := Mark{before: c.sessions.Before(), turn: c.turn, quiet: true, changes: true}
	if d := c.dirs[dir]; d != nil {
		m.hold(d.lease)
	}
	c.markObject(&m, o)
	return m
}

// Unmake forgets a file that Make noted and its active refused.
func (c *Cache) Unmake(dir ids.Object, name string, o ids.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.objects[o]; x != nil {
		c.drop(o, x)
	}
	d := c.dirs[dir]
	if d == nil {
		return
	}
	c.changed(d)
	if d.entries[name].Object == o {
		delete(d.entries, name)
		c.entries--
		d.complete = false
	}
}
