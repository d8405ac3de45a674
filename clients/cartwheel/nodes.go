package cartwheel

import (
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/cue"
)

// maxTold bounds the names of one directory that the kernel is let keep; of
// more it asks each time.
const maxTold = 1 << 14

// contended is for how long after a revocation the kernel is let keep no names
// of a directory: others work in it too, and telling the kernel of each name
// costs more than being asked.
const contended = 2 * time.Second

// hintLife is how long a lookup below cues counts for an open by the same
// thread.
const hintLife = time.Second

// told is a name that the kernel may still believe in.
type told struct {
	child mount.Inode // 0: that it is not there
	until time.Duration
}

// node is what the kernel knows, or has open.
type node struct {
	id      mount.Inode
	object  ids.Object
	cues    cue.Set // of a directory reached below cues
	lookups uint64
	opens   int
	writers int // of opens, those that may write
	// pages is the version that the kernel's pages are of; 0: not known.
	pages uint64
	// paged: it was opened, or its size was set, since the kernel knows it, so
	// that there may be pages. filling is closed when those are there that come
	// with its first open; nobody else has it open before.
	paged   bool
	filling chan struct{}
	// untold, where it is not 0, numbers the revocation that the kernel may not
	// have been told of yet: its attributes and pages may be old. changed counts
	// such revocations.
	untold, changed uint64
	// misnamed is the same for names: one may lead here that means something
	// else.
	misnamed uint64
	// revoked is when names of this directory were last given up.
	revoked time.Duration
	tidied  time.Duration // when told was last tidied because it was full
	// held: the active knows that the object is open here though it may have
	// no name.
	held bool
	// locked: a process's byte ranges were locked through this mount, and are
	// given up by any close of the file. A descriptor that was opened before is
	// told of if one that may write was open then: that is who will lock.
	locked bool
	told   map[string]told
	hint   *hint
	// dir and name led here last. prev and next are the neighbours by age.
	dir        mount.Inode
	name       string
	isDir      bool
	last       *mount.Attr // of a directory, as it was shown last
	prev, next *node
}

// hint remembers under which cues a file was looked up last, and by whom:
// opens of files do not say by which path they came.
type hint struct {
	pid  uint32
	at   time.Duration
	cues cue.Set
}

// below names a directory under cues.
type below struct {
	object ids.Object
	cues   cue.Set
}

// nodes is the table of nodes.
type nodes struct {
	mu      sync.Mutex // guards the rest, and all nodes
	byID    map[mount.Inode]*node
	virtual map[below]mount.Inode
	aliases map[ids.Object][]mount.Inode
	open    map[*node]struct{} // opens > 0
	lookups lookups
	leaving leaving
	// limit is how many nodes the kernel is let know; 0: as many as it likes.
	limit     int
	oldest    node        // head of the ring of nodes by the age of their last lookup
	over      atomic.Bool // there are more than the limit
	releasing bool        // the kernel is being asked to give nodes up
	names     int         // in all nodes' told
	swept     time.Duration
	// asleep is how much longer the clock of leases ran than that of Options.Now
	// since start.
	start   time.Time
	asleep  time.Duration
	next    mount.Inode
	notices uint64
}

func (t *nodes) init() {
	t.byID = map[mount.Inode]*node{}
	t.virtual = map[below]mount.Inode{}
	t.aliases = map[ids.Object][]mount.Inode{}
	t.leaving = leaving{&t.mu, map[ids.Object][]chan struct{}{}}
	t.open = map[*node]struct{}{}
	t.next = mount.Root + 1
	t.oldest.prev, t.oldest.next = &t.oldest, &t.oldest
}

// plain is the node of an object that was not reached as a directory below cues.
func plain(o ids.Object) mount.Inode {
	if o == ids.RootObject {
		return mount.Root
	}
	return mount.Inode(o)
}

// objectOf returns a node's object where the number alone tells.
func objectOf(id mount.Inode) (ids.Object, bool) {
	if id == mount.Root {
		return ids.RootObject, true
	}
	o := ids.Object(id)
	return o, o.Slice() != 0
}

// find returns what a node stands for.
func (t *nodes) find(id mount.Inode) (ids.Object, cue.Set, bool) {
	if o, ok := objectOf(id); ok {
		return o, cue.Set{}, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	if n == nil {
		return 0, cue.Set{}, false
	}
	return n.object, n.cues, true
}

// get returns a node, made where there is none; the mutex is held.
func (t *nodes) get(id mount.Inode, o ids.Object) *node {
	n := t.byID[id]
	if n == nil {
		n = &node{id: id, object: o}
		t.byID[id] = n
		t.age(n)
		t.over.Store(t.limit > 0 && len(t.byID) > t.limit)
	}
	return n
}

// known returns an object's plain node, or nil; the mutex is held.
func (t *nodes) known(o ids.Object) *node { return t.byID[plain(o)] }

// look counts one lookup of an object, reached under cues, and returns its
// node.
func (t *nodes) look(o ids.Object, cues cue.Set, dir bool) mount.Inode {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := plain(o)
	if dir && !cues.Empty() {
		id = t.alias(below{o, cues})
	}
	n := t.get(id, o)
	if dir {
		n.cues, n.isDir = cues, true
	}
	n.lookups++
	t.age(n)
	n.misnamed = 0 // this very lookup says what the name means
	return id
}

// alias returns the node of a directory under cues.
func (t *nodes) alias(b below) mount.Inode {
	id, ok := t.virtual[b]
	if !ok {
		id = t.next
		t.next++
		t.virtual[b] = id
		t.aliases[b.object] = append(t.aliases[b.object], id)
	}
	return id
}

// forget gives back lookups.
func (t *nodes) forget(id mount.Inode, count uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byID[id]; n != nil {
		n.lookups -= min(count, n.lookups)
		t.settle(n)
	}
}

// settle drops a node that nobody knows or has open.
func (t *nodes) settle(n *node) {
	if n.lookups > 0 || n.opens > 0 || n.id == mount.Root {
		return
	}
	delete(t.byID, n.id)
	n.unlink()
	t.over.Store(t.limit > 0 && len(t.byID) > t.limit)
	t.names -= len(n.told)
	if dir := t.byID[n.dir]; dir != nil && dir.told[n.name].child == n.id {
		t.untold(dir, n.name)
	}
	if _, is := objectOf(n.id); is {
		return
	}
	delete(t.virtual, below{n.object, n.cues})
	list := t.aliases[n.object]
	for i, id := range list {
		if id == n.id {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if t.aliases[n.object] = list; len(list) == 0 {
		delete(t.aliases, n.object)
	}
}

// tell notes that the kernel may believe a name until a time, and reports
// whether it may.
func (t *nodes) tell(dir mount.Inode, name string, child mount.Inode, now, until time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[dir]
	if n == nil {
		if dir != mount.Root {
			return false
		}
		n = t.get(mount.Root, ids.RootObject)
	}
	if x := t.byID[child]; x != nil {
		x.dir, x.name = dir, name
	}
	if n.revoked != 0 && now-n.revoked < contended || t.limit > 0 && t.names >= 2*t.limit {
		return false
	}
	if len(n.told) >= maxTold {
		if now-n.tidied < contended/4 {
			return false
		}
		n.tidied = now
		t.tidy(n, now)
		if len(n.told) >= maxTold {
			return false
		}
	}
	if n.told == nil {
		n.told = map[string]told{}
	}
	t.names -= len(n.told)
	n.told[name] = told{child, until}
	t.names += len(n.told)
	return true
}

// believed returns how much longer the kernel may believe the name that led to an
// object last.
func (t *nodes) believed(o ids.Object, now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.known(o)
	if n == nil {
		return 0
	}
	if dir := t.byID[n.dir]; dir != nil && dir.told[n.name].child == n.id {
		return max(0, dir.told[n.name].until-now)
	}
	return 0
}

// untold forgets that the kernel may believe a name; the mutex is held.
func (t *nodes) untold(dir *node, name string) {
	if _, ok := dir.told[name]; ok {
		delete(dir.told, name)
		t.names--
	}
}

// of returns the nodes of an object: the plain one and those below cues; the
// mutex is held.
func (t *nodes) of(o ids.Object) []*node {
	var out []*node
	if n := t.known(o); n != nil {
		out = append(out, n)
	}
	for _, id := range t.aliases[o] {
		if n := t.byID[id]; n != nil {
			out = append(out, n)
		}
	}
	return out
}

// isDir reports whether a node is known, as a directory.
func (t *nodes) isDir(id mount.Inode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	return n != nil && n.isDir
}

// opened counts one more handle of a node, and closed one less; the mutex is
// held.
func (t *nodes) opened(n *node, flags mount.OpenFlags) {
	n.opens++
	if flags.Writes() {
		n.writers++
	}
	t.open[n] = struct{}{}
}

func (t *nodes) closed(n *node, flags mount.OpenFlags) {
	if flags.Writes() {
		n.writers--
	}
	if n.opens--; n.opens == 0 {
		delete(t.open, n)
	}
}

// lock notes that a process's byte ranges of a file were locked.
func (t *nodes) lock(o ids.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.known(o); n != nil {
		n.locked = true
	}
}

// note remembers under which cues a file was looked up.
func (t *nodes) note(o ids.Object, pid uint32, cues cue.Set, now boottime.Func) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.known(o)
	switch {
	case n == nil:
	case !cues.Empty():
		n.hint = &hint{pid: pid, at: now(), cues: cues}
	case n.hint != nil && n.hint.pid == pid:
		n.hint = nil
	}
}

// hinted returns the cues under which a thread just looked a file up.
func (t *nodes) hinted(o ids.Object, pid uint32, now boottime.Func) cue.Set {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.known(o); n != nil && n.hint != nil && n.hint.pid == pid && now()-n.hint.at < hintLife {
		return n.hint.cues
	}
	return cue.Set{}
}
