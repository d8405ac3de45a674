package names

import (
	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// What a client does by itself in directories that are its alone shows in its
// Cache at once, ahead of the active, which hears of it later. Until Settle, no
// answer of a node changes what the Cache has of the objects concerned: it may
// not know of the operation yet.

// isAlone reports whether a directory is this client's alone, and no operation of
// its own on the names is under way at a node.
func (c *Cache) isAlone(d *directory) bool {
	return d != nil && c.left(d.lease) > 0 && c.left(d.alone) > 0 && d.inflight == 0
}

// means returns what a name of a directory that is this client's alone means;
// false where that is not known, or the directory is shared.
func (c *Cache) means(dir ids.Object, name string) (d *directory, e Entry, ok bool) {
	if d = c.dirs[dir]; !c.isAlone(d) {
		return nil, e, false
	}
	e, known := d.entries[name]
	return d, e, known || d.complete
}

// attr returns what is known of an object, or nil.
func (c *Cache) attr(o ids.Object) *pb.Attr {
	if x := c.objects[o]; x != nil && x.attr != nil && c.left(x.cover) > 0 {
		return x.attr
	}
	return nil
}

// Lead notes an operation on objects that the caller shows by itself, until Settle.
func (c *Cache) Lead(list ...ids.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lead(list...)
}

// lead notes an operation on objects that their active has not heard of.
func (c *Cache) lead(list ...ids.Object) {
	for _, o := range list {
		c.ahead[o]++
	}
}

// touch gives a directory the time of a change of its names, and so many
// subdirectories more.
func (c *Cache) touch(dir ids.Object, d *directory, links int, at int64) {
	c.changed(d)
	x := c.objects[dir]
	if x == nil || x.attr == nil {
		return
	}
	now := proto.CloneOf(x.attr)
	now.MtimeNs, now.CtimeNs, now.Nlink = at, at, uint32(int(now.Nlink)+links)
	x.attr = now
}

// put gives a name a meaning; Entry{} takes it away.
func (c *Cache) put(d *directory, name string, e Entry) {
	_, there := d.entries[name]
	if e.Object == 0 && d.complete {
		if there {
			delete(d.entries, name)
			c.entries--
		}
		return
	}
	if d.entries == nil {
		d.entries = map[string]Entry{}
	}
	if d.entries[name] = e; !there {
		c.entries++
	}
}

// subdirectories is how many of an object's directory's links it is.
func subdirectories(e Entry) int {
	if e.Type == typeDir {
		return 1
	}
	return 0
}

// MakeAhead notes a new object that is no regular file, with all of its
// attributes. A new directory is this client's alone like the one that it is in,
// until its active grants leases on it. MakeAhead refuses where Alone does.
func (c *Cache) MakeAhead(dir ids.Object, name string, attr *pb.Attr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, e, ok := c.means(dir, name)
	if !ok || e.Object != 0 {
		return false
	}
	o := ids.Object(attr.Object)
	e = Entry{Object: o, Type: attr.Mode & typeMask}
	cover := d.lease
	if e.Type == typeDir {
		made := c.directory(o)
		made.lease, made.alone, made.complete = &lease{under: d.lease}, &lease{under: d.alone}, true
		cover = made.lease
	}
	c.put(d, name, e)
	c.touch(dir, d, subdirectories(e), attr.CtimeNs)
	c.objects[o] = &object{attr: attr, cover: cover, xattrs: true, born: d.alone}
	c.lead(dir, o)
	c.shrink()
	return true
}

// Removal is a name that RemoveAhead is to take away.
type Removal struct {
	Dir    ids.Object
	Name   string
	Object ids.Object
	// May decides by what is known of the object (nil: nothing) whether the caller
	// may remove it. It is called under the Cache's mutex.
	May func(*pb.Attr) bool
	At  int64 // when, in Unix nanoseconds
}

// RemoveAhead takes a name away. It refuses where the directory is shared, where
// the name is not known to mean the object, and where that is a directory which is
// shared, or not known to be empty.
func (c *Cache) RemoveAhead(r Removal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, e, ok := c.means(r.Dir, r.Name)
	if !ok || e.Object == 0 || e.Object != r.Object || d.busy[r.Name] > 0 || !r.May(c.attr(e.Object)) {
		return false
	}
	if e.Type == typeDir && !c.isEmptyAlone(e.Object) {
		return false
	}
	c.put(d, r.Name, Entry{})
	c.touch(r.Dir, d, -subdirectories(e), r.At)
	c.unlinked(e)
	c.lead(r.Dir, e.Object)
	return true
}

// isEmptyAlone reports whether a directory is this client's alone and has no names.
func (c *Cache) isEmptyAlone(o ids.Object) bool {
	d := c.dirs[o]
	if !c.isAlone(d) || !d.complete {
		return false
	}
	for _, e := range d.entries {
		if e.Object != 0 {
			return false
		}
	}
	return true
}

// unlinked forgets an object that lost a name. Which directory covers one that has
// another name is not known.
func (c *Cache) unlinked(e Entry) {
	if x := c.objects[e.Object]; x != nil {
		c.drop(e.Object, x)
	}
	if d := c.dirs[e.Object]; d != nil {
		c.empty(e.Object, d)
	}
}

// Move is a name that MoveAhead is to give to an object instead of another one.
type Move struct {
	Dir, To       ids.Object
	Name, NewName string
	Object        ids.Object
	Target        ids.Object // what NewName means, 0: nothing
	// May decides by what is known of the object and of the target (nil: nothing)
	// whether the caller may. It is called under the Cache's mutex.
	May func(object, target *pb.Attr) bool
	At  int64
}

// MoveAhead gives an object another name, in its directory or, if it is no
// directory itself, in another one. It refuses where a directory is shared or the
// names are not known to mean the objects, and where a directory would be
// replaced.
func (c *Cache) MoveAhead(m Move) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, e, ok := c.means(m.Dir, m.Name)
	to, target, ok2 := c.means(m.To, m.NewName)
	switch {
	case !ok || !ok2 || e.Object == 0 || e.Object != m.Object || target.Object != m.Target || e.Object == target.Object:
		return false
	case d.busy[m.Name] > 0 || to.busy[m.NewName] > 0:
		return false
	case e.Type == typeDir && (m.Dir != m.To || target.Object != 0) || target.Type == typeDir:
		return false
	}
	x := c.objects[e.Object]
	if !m.May(c.attr(e.Object), c.attr(target.Object)) {
		return false
	}
	c.put(d, m.Name, Entry{})
	c.put(to, m.NewName, e)
	c.touch(m.Dir, d, 0, m.At)
	if m.To != m.Dir {
		c.touch(m.To, to, 0, m.At)
	}
	if target.Object != 0 {
		c.unlinked(target)
		c.lead(target.Object)
	}
	if x != nil {
		c.moved(e, x, m)
	}
	c.lead(m.Dir, e.Object)
	if m.To != m.Dir {
		c.lead(m.To)
	}
	return true
}

// moved gives an object the directory that it is in now. Where it has other names,
// which one covers it is not known.
func (c *Cache) moved(e Entry, x *object, m Move) {
	from, to := c.dirs[m.Dir], c.dirs[m.To]
	if x.attr == nil || e.Type != typeDir && (x.attr.Nlink != 1 || x.cover != from.lease && x.cover != x.own) {
		c.drop(e.Object, x)
		return
	}
	now := proto.CloneOf(x.attr)
	now.CtimeNs, now.Parent = m.At, uint64(m.To)
	if x.attr = now; x.cover == from.lease {
		x.cover = to.lease
	}
	if x.born != to.alone {
		x.born = nil
	}
}

// SetAhead changes attributes of an object that this client made since its
// directory is this client's alone, so that nobody else can have seen it. change
// gets a copy to change, and returns false to refuse.
func (c *Cache) SetAhead(o ids.Object, change func(*pb.Attr) bool) (parent ids.Object, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if parent, ok = c.set(o, change); ok {
		c.lead(parent, o)
	}
	return parent, ok
}

// SetNew is SetAhead for a file that Make noted and its active has not heard of.
func (c *Cache) SetNew(o ids.Object, change func(*pb.Attr) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.set(o, change)
	return ok
}

func (c *Cache) set(o ids.Object, change func(*pb.Attr) bool) (parent ids.Object, ok bool) {
	x := c.objects[o]
	if x == nil || x.attr == nil || x.born == nil || c.left(x.cover) <= 0 || c.left(x.born) <= 0 {
		return 0, false
	}
	parent = ids.Object(x.attr.Parent)
	if d := c.dirs[parent]; !c.isAlone(d) || d.alone != x.born {
		return 0, false
	}
	if x.attr.Mode&typeMask != typeDir && x.attr.Nlink != 1 { // its other name may be in a directory that is shared
		return 0, false
	}
	now := proto.CloneOf(x.attr)
	if !change(now) {
		return 0, false
	}
	x.attr = now
	return parent, true
}

// Settle hears that the active has, or has refused, an operation on objects, and
// with which serial: whatever it said of them before that is older. made is the
// object that the operation made, 0: none.
func (c *Cache) Settle(serial uint64, made ids.Object, list ...ids.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range list {
		if o == 0 {
			continue
		}
		if c.ahead[o]--; c.ahead[o] <= 0 {
			delete(c.ahead, o)
		}
		c.miss(o, serial)
		if d := c.dirs[o]; d != nil { // what was asked for meanwhile is older, too
			c.changed(d)
		}
		if x := c.objects[o]; x != nil && x.attr != nil && x.attr.Change < serial {
			now := proto.CloneOf(x.attr)
			now.Change = serial
			x.attr = now
		}
	}
	d := c.dirs[made]
	if d == nil {
		return
	}
	// Leases that go by another directory's end: the active knows this one by now,
	// and has granted none on it.
	if d.alone != nil && d.alone.under != nil {
		d.alone.gone = true
	}
	if d.lease != nil && d.lease.under != nil {
		d.lease.gone = true
		c.empty(made, d)
	}
}

// MarkAhead is taken before operations are sent that Settle will hear of.
func (c *Cache) MarkAhead() Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Mark{before: c.sessions.Before(), turn: c.turn, quiet: true, changes: true}
}
