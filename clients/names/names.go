// Package names is a client's cache of names and attributes: what the leases
// that nodes granted let it answer without asking. It holds entries (there or
// known not to be), whole listings and attributes, bounded; it asks nobody and
// tells no kernel. What it is told, it keeps only as long as a lease covers it:
// a lease that was revoked, or whose session or slice is void, takes all that
// it covered with it. A Cache is safe for use by many goroutines.
package names

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/clients/session"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Sessions judges leases; *session.Manager in life.
type Sessions interface {
	Before() uint64
	Accept(node ids.Node, before uint64, g *pb.Grant) (session.Stamp, bool)
	Left(session.Stamp) time.Duration
}

// Limits bound what is kept. When one is met, some of the old is dropped, without
// an order; it is asked for again when needed. Zero fields are the defaults.
type Limits struct {
	// Objects bounds the attributes, Entries the names: with the defaults one
	// directory of 10^5 files fits.
	Objects, Entries int
	// Inline bounds the bytes of small files' content.
	Inline int
}

// Defaults of Limits.
const (
	DefaultObjects = 1 << 17
	DefaultEntries = 1 << 17
	DefaultInline  = 32 << 20
)

// withDefaults replaces zeros by the defaults.
func (l Limits) withDefaults() Limits {
	if l.Objects == 0 {
		l.Objects = DefaultObjects
	}
	if l.Entries == 0 {
		l.Entries = DefaultEntries
	}
	if l.Inline == 0 {
		l.Inline = DefaultInline
	}
	return l
}

// lease is one lease, from when it was granted until it ends without a gap.
// Everything that it covers points to it. The Cache's mutex guards it.
type lease struct {
	stamp session.Stamp
	gone  bool
	// under is the lease by which this one goes until its active grants one: that
	// of the directory in which this client made its directory.
	under *lease
}

// Entry is what a name means: Object 0 says that it is not there.
type Entry struct {
	Object ids.Object
	Type   uint32 // type bits of the mode
}

type object struct {
	attr   *pb.Attr // never changed, only replaced
	cover  *lease   // of attr
	own    *lease   // of the object alone, if held
	xattrs bool     // attr has every extended attribute
	// born is the lease of kind ALONE under which this client made the object; nil:
	// another client may have seen it.
	born *lease
}

type directory struct {
	lease    *lease
	alone    *lease // nobody else reads or changes the names before it is revoked
	entries  map[string]Entry
	complete bool // what is not in entries is not there
	misses   int
	inflight int            // own operations on its names under way
	ops      uint64         // and how many there were
	turned   uint64         // the Cache's turn when the last of them began or ended
	busy     map[string]int // the names that those under way are about
	made     uint64         // files noted by Make
}

// Cache is the cache.
type Cache struct {
	sessions Sessions
	limits   Limits
	// OnAttr, if not nil, hears of all attributes that are learned, kept or not.
	// It is set before the Cache is used, and must not block or call back.
	OnAttr func(*pb.Attr)

	mu      sync.Mutex // guards the rest
	objects map[ids.Object]*object
	dirs    map[ids.Object]*directory
	entries int
	inline  int
	// turn counts the beginnings and ends of own operations on names; lost is
	// the last one of a directory that is not kept any more.
	turn, lost uint64
	missed     missed
	// ahead counts the operations of this client on an object that its active has
	// not heard of.
	ahead map[ids.Object]int
}

// New returns an empty Cache.
func New(s Sessions, limits Limits) *Cache {
	return &Cache{sessions: s, limits: limits.withDefaults(), objects: map[ids.Object]*object{}, dirs: map[ids.Object]*directory{},
		ahead: map[ids.Object]int{}}
}

func (c *Cache) left(l *lease) time.Duration {
	if l == nil || l.gone {
		return 0
	}
	if l.under != nil {
		return c.left(l.under)
	}
	return c.sessions.Left(l.stamp)
}

// Attr returns an object's attributes, which must not be changed, and how long
// they stay good if nothing is heard; false where they are not known.
func (c *Cache) Attr(o ids.Object) (*pb.Attr, time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.objects[o]
	if x == nil || x.attr == nil {
		return nil, 0, false
	}
	left := c.left(x.cover)
	return x.attr, left, left > 0
}

// Good returns how long attributes stay good, 0 where they are not those that
// are known now, and whether that is under a lease on the object itself, not
// only under its directory's.
func (c *Cache) Good(a *pb.Attr) (left time.Duration, own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.objects[ids.Object(a.Object)]
	if x == nil || x.attr == nil || x.attr.Change != a.Change {
		return 0, false
	}
	return c.left(x.cover), x.cover == x.own || a.Mode&typeMask == typeDir
}

// Xattrs is Attr with every extended attribute.
func (c *Cache) Xattrs(o ids.Object) (*pb.Attr, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.objects[o]
	if x == nil || x.attr == nil || !x.xattrs || c.left(x.cover) <= 0 {
		return nil, false
	}
	return x.attr, true
}

// Own is Attr under a lease on the object alone: an active that removes it asks
// whether it is open here.
func (c *Cache) Own(o ids.Object) (*pb.Attr, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.objects[o]
	if x == nil || x.attr == nil || c.left(x.own) <= 0 || x.cover != x.own && c.left(x.cover) <= 0 {
		return nil, false
	}
	return x.attr, true
}

// Lookup returns what a name means, and how long that stays good; false where
// it is not known.
func (c *Cache) Lookup(dir ids.Object, name string) (Entry, time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dirs[dir]
	if d == nil {
		return Entry{}, 0, false
	}
	left := c.left(d.lease)
	if left <= 0 {
		return Entry{}, 0, false
	}
	e, ok := d.entries[name]
	if !ok && !d.complete {
		d.misses++
	}
	return e, left, ok || d.complete
}

// Left is how long what is known of a directory stays good, 0 if nothing is.
func (c *Cache) Left(dir ids.Object) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.dirs[dir]; d != nil {
		return c.left(d.lease)
	}
	return 0
}

// Means is how long a name stays good as one of this object, 0 where that is not
// what it is known to mean.
func (c *Cache) Means(dir ids.Object, name string, o ids.Object) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dirs[dir]
	if d == nil {
		return 0
	}
	if e, ok := d.entries[name]; e.Object != o || !ok && !d.complete {
		return 0
	}
	return c.left(d.lease)
}

// Misses is how many names were asked for in vain since the directory's lease
// was granted.
func (c *Cache) Misses(dir ids.Object) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.dirs[dir]; d != nil && !d.complete && c.left(d.lease) > 0 {
		return d.misses
	}
	return 0
}

// Named is one name of a listing.
type Named struct {
	Name string
	Entry
}

// Listing returns every name of a directory, in no order; false where not all
// are known.
func (c *Cache) Listing(dir ids.Object) ([]Named, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dirs[dir]
	if d == nil || !d.complete || c.left(d.lease) <= 0 {
		return nil, false
	}
	out := make([]Named, 0, len(d.entries))
	for name, e := range d.entries {
		if e.Object != 0 {
			out = append(out, Named{name, e})
		}
	}
	return out, true
}

// Revoke gives a lease up with all that it covers, and reports whether an
// operation on the directory's names is under way.
func (c *Cache) Revoke(o ids.Object, what pb.Grant_What) (busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if what == pb.Grant_FILE {
		if x := c.objects[o]; x != nil {
			if x.own != nil {
				x.own.gone = true
			}
			c.drop(o, x)
		}
		return false
	}
	d := c.dirs[o]
	if d == nil {
		return false
	}
	if what == pb.Grant_ALONE {
		if d.alone != nil {
			d.alone.gone = true
		}
		return false
	}
	if d.lease != nil {
		d.lease.gone = true
	}
	c.empty(o, d)
	return d.inflight > 0
}

// Forget drops what is known of an object and, if it is a directory, of its
// names: the outcome of an operation is not known. Leases stay.
func (c *Cache) Forget(o ids.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.miss(o, 0)
	if x := c.objects[o]; x != nil {
		c.drop(o, x)
	}
	if d := c.dirs[o]; d != nil {
		c.changed(d)
		c.entries -= len(d.entries)
		d.entries, d.complete = nil, false
	}
}

// Clear drops everything.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missAll()
	for o, x := range c.objects {
		c.drop(o, x)
	}
	for o, d := range c.dirs {
		c.empty(o, d)
	}
}

func (c *Cache) drop(o ids.Object, x *object) {
	c.inline -= len(x.attr.GetContent().GetInline())
	delete(c.objects, o)
}

// empty drops a directory's names, and the directory where nothing is under way.
func (c *Cache) empty(o ids.Object, d *directory) {
	c.entries -= len(d.entries)
	d.entries, d.complete, d.misses, d.lease, d.alone = nil, false, 0, nil, nil
	if d.inflight == 0 {
		c.forget(o, d)
	}
}

// Len returns how many attributes and names are kept.
func (c *Cache) Len() (objects, entries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.objects), c.entries
}

// maxLooked bounds the names that Unheld looks at.
const maxLooked = 1 << 14

// Unheld returns up to most regular files of a directory and its slice that are
// known and not empty, without a lease of their own and no larger than size:
// those behind o's name first, in the order of their names. It returns none
// where the directory is this client's alone, whose active may not know of them.
func (c *Cache) Unheld(dir, o ids.Object, most int, size uint64) []ids.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dirs[dir]
	if d == nil || c.left(d.lease) <= 0 || c.left(d.alone) > 0 {
		return nil
	}
	var found []Named
	behind := ""
	looked := 0
	for name, e := range d.entries {
		if e.Object == o {
			behind = name
			continue
		}
		if looked++; looked > maxLooked {
			break
		}
		x := c.objects[e.Object]
		if e.Object.Slice() != dir.Slice() || x == nil || x.attr == nil || x.attr.Mode&typeMask != typeRegular ||
			x.attr.Size == 0 || x.attr.Size > size || c.left(x.cover) <= 0 || c.left(x.own) > 0 {
			continue
		}
		found = append(found, Named{name, e})
	}
	SortNames(found)
	at, _ := slices.BinarySearchFunc(found, behind, func(n Named, name string) int { return cmp.Compare(n.Name, name) })
	out := make([]ids.Object, 0, min(most, len(found)))
	for i := range cap(out) {
		out = append(out, found[(at+i)%len(found)].Object)
	}
	return out
}

// SortNames puts names in the order in which nodes list them.
func SortNames(list []Named) {
	slices.SortFunc(list, func(a, b Named) int { return cmp.Compare(a.Name, b.Name) })
}
