package names

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// typeMask and typeDir are st_mode's.
const (
	typeMask    = 0o170000
	typeDir     = 0o040000
	typeRegular = 0o100000
)

// Mark is the state before a request. What its answer says is kept only under
// leases that were held from the mark on, or that came with the answer: one
// that was lost and granted again meanwhile may hide a newer state.
type Mark struct {
	before uint64
	held   [6]*lease
	n      int
	// dirs are those whose names the request asks about or changes.
	dirs  [2]ids.Object
	ops   [2]uint64
	home  [2]ids.Object // of names, which such an operation changes
	names [2]string
	made  uint64 // of dirs[0]
	turn  uint64
	quiet bool // no operation of our own on them was under way
	op    bool // the request is such an operation
	// changes: the request changes attributes.
	changes bool
	copied  bool // see OfCopy
}

// OfCopy says that the answer is that of a member that does not act for the slice:
// it may be older than what is known, and no lease covers it.
func (m *Mark) OfCopy() { m.copied = true }

func (m *Mark) hold(l *lease) {
	if l != nil && m.n < len(m.held) {
		m.held[m.n] = l
		m.n++
	}
}

// MarkDir is taken before names of a directory are read.
func (c *Cache) MarkDir(dir ids.Object) Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := Mark{before: c.sessions.Before(), turn: c.turn, quiet: true}
	m.dirs[0] = dir
	if d := c.dirs[dir]; d != nil {
		m.hold(d.lease)
		m.ops[0], m.made, m.quiet = d.ops, d.made, d.inflight == 0
	}
	return m
}

// MarkObject is taken before an object's attributes are read or changed.
func (c *Cache) MarkObject(o ids.Object) Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := Mark{before: c.sessions.Before(), turn: c.turn, quiet: true}
	c.markObject(&m, o)
	return m
}

func (c *Cache) markObject(m *Mark, o ids.Object) {
	if x := c.objects[o]; x != nil {
		m.hold(x.own)
		if x.cover != x.own {
			m.hold(x.cover)
		}
	}
	if d := c.dirs[o]; d != nil {
		m.hold(d.lease)
	}
}

// Begin is taken before an operation changes names of one directory or two (to
// is 0 for one), and attributes of an object (0 for none). The names are the
// one in dir and the one in to. End it.
func (c *Cache) Begin(dir, to, o ids.Object, changed ...string) Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := Mark{before: c.sessions.Before(), op: true, changes: true, dirs: [2]ids.Object{dir, to}}
	copy(m.names[:], changed)
	for i, id := range [2]ids.Object{dir, to} {
		if id != 0 && m.names[i] != "" {
			d := c.directory(id)
			if d.busy == nil {
				d.busy = map[string]int{}
			}
			d.busy[m.names[i]]++
		}
	}
	m.home = [2]ids.Object{dir, to}
	for i, id := range m.dirs {
		if id == 0 || i == 1 && to == dir {
			m.dirs[i] = 0
			continue
		}
		d := c.directory(id)
		d.inflight++
		c.changed(d)
		m.hold(d.lease)
	}
	if o != 0 {
		c.markObject(&m, o)
	}
	m.turn = c.turn
	return m
}

// End ends what Begin began, after the answer was learned.
func (c *Cache) End(m *Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, id := range m.home {
		if d := c.dirs[id]; id != 0 && d != nil && m.names[i] != "" {
			if d.busy[m.names[i]]--; d.busy[m.names[i]] == 0 {
				delete(d.busy, m.names[i])
			}
		}
	}
	for _, id := range m.dirs {
		if d := c.dirs[id]; id != 0 && d != nil {
			d.inflight--
			c.changed(d)
			if d.inflight == 0 && d.lease == nil {
				c.forget(id, d)
			}
		}
	}
}

func (c *Cache) directory(id ids.Object) *directory {
	d := c.dirs[id]
	if d == nil {
		d = &directory{turned: c.lost}
		c.dirs[id] = d
	}
	return d
}

// changed notes that names of a directory are, or may have been, changed by an
// operation of our own.
func (c *Cache) changed(d *directory) {
	c.turn++
	d.ops++
	d.turned = c.turn
}

// forget drops a directory.
func (c *Cache) forget(id ids.Object, d *directory) {
	c.lost = max(c.lost, d.turned)
	delete(c.dirs, id)
}

// Learner takes what one answer says.
type Learner struct {
	c *Cache
	m *Mark
	// more are leases beside those of the mark.
	more []*lease
}

// Learn takes the grants of an answer and then what fn says of its content, as
// one step.
func (c *Cache) Learn(m *Mark, from ids.Node, grants []*pb.Grant, fn func(*Learner)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := Learner{c: c, m: m}
	for _, g := range grants {
		l.grant(from, g)
	}
	fn(&l)
	c.shrink()
}

func (l *Learner) grant(from ids.Node, g *pb.Grant) {
	stamp, ok := l.c.sessions.Accept(from, l.m.before, g)
	if !ok {
		return
	}
	o := ids.Object(g.Object)
	var at **lease
	switch d := (*directory)(nil); g.What {
	case pb.Grant_ALONE:
		if d = l.c.dirs[o]; d == nil {
			return // its names are not known: it would be good for nothing
		}
		at = &d.alone
	case pb.Grant_NAMES:
		d = l.c.directory(o)
		if l.c.left(d.lease) <= 0 {
			l.c.entries -= len(d.entries)
			d.entries, d.complete, d.misses = nil, false, 0
		}
		at = &d.lease
	default:
		x := l.c.objects[o]
		if x == nil {
			x = &object{}
			l.c.objects[o] = x
		}
		at = &x.own
	}
	if l.c.left(*at) <= 0 {
		*at = &lease{}
	}
	(*at).stamp, (*at).under = stamp, nil
	l.more = append(l.more, *at)
}

// covers reports whether a lease is good for what the answer says.
func (l *Learner) covers(x *lease) bool {
	if l.m.copied || l.c.left(x) <= 0 {
		return false
	}
	for i := range l.m.n {
		if l.m.held[i] == x {
			return true
		}
	}
	for _, y := range l.more {
		if y == x {
			return true
		}
	}
	return false
}

// Attr takes attributes, which then belong to the cache; all says that they
// have every extended attribute.
func (l *Learner) Attr(attr *pb.Attr, all bool) {
	if attr == nil {
		return
	}
	c, o := l.c, ids.Object(attr.Object)
	if c.OnAttr != nil {
		c.OnAttr(attr)
	}
	if l.m.copied {
		return
	}
	if c.ahead[o] > 0 {
		if x := c.objects[o]; l.m.changes && x != nil { // what this answer says is in neither
			c.drop(o, x)
		}
		return
	}
	all = all || attr.NoXattrs
	x := c.objects[o]
	known := x != nil && x.attr != nil && c.left(x.cover) > 0
	cover := l.cover(x, attr)
	if !known && c.outdated(o, l.m) {
		cover = nil
	}
	if cover == nil && l.m.changes {
		c.miss(o, attr.Change)
	}
	if x == nil {
		if cover == nil {
			return
		}
		x = &object{}
		c.objects[o] = x
	}
	old := x.attr
	switch {
	case known && old.Change > attr.Change:
		return
	case known && old.Change == attr.Change:
		if attr.Content == nil && old.Content != nil {
			attr.Content = old.Content
		}
		if x.xattrs && !all {
			attr.Xattrs, all = old.Xattrs, true
		}
	case known && old.Version == attr.Version && attr.Content == nil:
		attr.Content = old.Content
	}
	if cover == nil {
		if x.own == nil {
			c.drop(o, x)
		} else {
			c.inline -= len(old.GetContent().GetInline())
			x.attr, x.cover = nil, nil
		}
		return
	}
	c.inline += len(attr.GetContent().GetInline()) - len(old.GetContent().GetInline())
	x.attr, x.cover, x.xattrs = attr, cover, all
}

// cover finds the lease that attributes are good under.
func (l *Learner) cover(x *object, attr *pb.Attr) *lease {
	o := ids.Object(attr.Object)
	if attr.Mode&typeMask == typeDir {
		if d := l.c.dirs[o]; d != nil && l.covers(d.lease) {
			return d.lease
		}
		return nil
	}
	if x != nil && l.covers(x.own) {
		return x.own
	}
	if d := l.c.dirs[ids.Object(attr.Parent)]; d != nil && l.covers(d.lease) {
		return d.lease
	}
	return nil
}

// Entry takes what a name means. Where no lease covers the answer to an
// operation of our own, what the name meant before is forgotten: the node asks
// nobody to give up what it changed itself, and a lease that does not count now
// counts again with the session's next keep-alive.
func (l *Learner) Entry(dir ids.Object, name string, e Entry) {
	d := l.c.dirs[dir]
	if d == nil || !l.covers(d.lease) || !l.settled(dir, d) || l.c.ahead[dir] > 0 {
		if l.m.op {
			l.Unknown(dir, name)
		}
		return
	}
	if e.Object == 0 && !l.m.op && d.made != l.m.made {
		return // it may have been made since
	}
	if e.Object == 0 && d.complete {
		if _, there := d.entries[name]; there {
			delete(d.entries, name)
			l.c.entries--
		}
		return
	}
	if d.entries == nil {
		d.entries = map[string]Entry{}
	}
	before := len(d.entries)
	d.entries[name] = e
	l.c.entries += len(d.entries) - before
}

// settled reports whether no operation of our own came between that may have
// changed the directory's names after they were read.
func (l *Learner) settled(dir ids.Object, d *directory) bool {
	if l.m.op {
		return dir == l.m.dirs[0] || dir == l.m.dirs[1]
	}
	if d.turned > l.m.turn {
		return false
	}
	if dir != l.m.dirs[0] {
		return d.inflight == 0
	}
	return l.m.quiet && d.ops == l.m.ops[0]
}

// Below reports whether names of a directory that nobody asked for may be
// taken from the answer; not where it is this client's alone, whose active does
// not know of all of them.
func (l *Learner) Below(dir ids.Object) bool {
	d := l.c.dirs[dir]
	return d != nil && l.covers(d.lease) && l.settled(dir, d) && l.c.left(d.alone) <= 0 && l.c.ahead[dir] == 0
}

// Complete says that every name of the directory was told; a directory that
// was just made has none.
func (l *Learner) Complete(dir ids.Object) {
	if d := l.c.dirs[dir]; d != nil && l.covers(d.lease) && (l.m.op || l.settled(dir, d)) && l.c.ahead[dir] == 0 {
		d.complete = true
	}
}

// shrink drops some of what is kept where that is too much.
func (c *Cache) shrink() {
	if len(c.objects) > c.limits.Objects || c.inline > c.limits.Inline {
		c.missAll()
		for o, x := range c.objects {
			c.drop(o, x)
			if len(c.objects) <= c.limits.Objects*15/16 && c.inline <= c.limits.Inline*15/16 {
				break
			}
		}
	}
	if c.entries > c.limits.Entries {
		for o, d := range c.dirs {
			if d.inflight == 0 {
				c.empty(o, d)
			}
			if c.entries <= c.limits.Entries*15/16 {
				break
			}
		}
	}
}

// Unknown forgets what a name means: it changed, and to what is not told.
func (l *Learner) Unknown(dir ids.Object, name string) {
	d := l.c.dirs[dir]
	if d == nil {
		return
	}
	if _, there := d.entries[name]; there {
		delete(d.entries, name)
		l.c.entries--
	}
	d.complete = false
}

// Changed forgets an object's attributes: they changed, and to what is not told.
func (l *Learner) Changed(o ids.Object) {
	c := l.c
	c.miss(o, 0)
	x := c.objects[o]
	switch {
	case x == nil:
	case x.own == nil:
		c.drop(o, x)
	default:
		c.inline -= len(x.attr.GetContent().GetInline())
		x.attr, x.cover = nil, nil
	}
}

// Anchor returns the mark of a directory's names as they stand with this
// answer, for Unbroken of later pages.
func (l *Learner) Anchor(dir ids.Object) Mark {
	m := Mark{op: l.m.op, quiet: l.m.quiet}
	m.dirs[0] = dir
	if d := l.c.dirs[dir]; d != nil && l.covers(d.lease) {
		m.hold(d.lease)
		m.ops[0] = l.m.ops[0]
	}
	return m
}

// Unbroken reports whether the directory has been under one lease since the
// anchor, without an operation of our own on its names.
func (l *Learner) Unbroken(anchor *Mark, dir ids.Object) bool {
	d := l.c.dirs[dir]
	return d != nil && anchor.n > 0 && anchor.quiet && d.lease == anchor.held[0] && l.c.left(d.lease) > 0 &&
		d.inflight == 0 && d.ops == anchor.ops[0] && l.covers(d.lease)
}

// Tried notes that a directory was read ahead in vain, so that it is not tried
// again under this lease.
func (c *Cache) Tried(dir ids.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.dirs[dir]; d != nil {
		d.misses = -1 << 30
	}
}
