// Package inodes keeps what a kernel knows of the tree, and what it has open. A
// Table has a node for each inode that the kernel was shown, with the names and
// pages that it may keep. When leases are given up, the Table writes a Notice of
// what has become old, and a Kernel passes it on. Shown remembers what names were
// shown to mean, for renames. The package sends nothing to nodes and decides
// nothing about leases. A Table, a Kernel and a Shown are safe for use by many
// goroutines, each with a lock of its own; each lock is held over no call but
// those to functions whose comments say so.
package inodes

import (
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// below names a directory under cues.
type below struct {
	object ids.Object
	cues   cue.Set
}

// Table is the table of nodes.
type Table struct {
	mu      sync.Mutex // guards the rest, and all nodes
	byID    map[mount.Inode]*node
	virtual map[below]mount.Inode
	aliases map[ids.Object][]mount.Inode
	open    map[*node]struct{} // opens > 0
	lookups lookups
	// leaving are the files that may be gone soon, each with what is closed when
	// that is decided.
	leaving map[ids.Object][]chan struct{}
	// limit is how many nodes the kernel is let know; 0: as many as it likes.
	limit     int
	oldest    node        // head of the ring of nodes by the age of their last lookup
	over      atomic.Bool // there are more than the limit
	releasing bool        // the kernel is being asked to give nodes up
	names     int         // in cached of all nodes
	swept     time.Duration
	next      mount.Inode // the next node of a directory below cues
	notices   uint64
}

// New returns an empty Table that lets the kernel know so many nodes; 0: as many
// as it likes.
func New(limit int) *Table {
	t := &Table{
		byID: map[mount.Inode]*node{}, virtual: map[below]mount.Inode{}, aliases: map[ids.Object][]mount.Inode{},
		open: map[*node]struct{}{}, leaving: map[ids.Object][]chan struct{}{}, limit: limit, next: mount.Root + 1,
	}
	t.oldest.prev, t.oldest.next = &t.oldest, &t.oldest
	return t
}

// Known is how many nodes the kernel knows, and how many names it may believe.
func (t *Table) Known() (nodes, names int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID), t.names
}

// Plain is the node of an object that was not reached as a directory below cues.
func Plain(o ids.Object) mount.Inode {
	if o == ids.RootObject {
		return mount.Root
	}
	return mount.Inode(o)
}

// objectOf returns a node's object where the number is enough to tell.
func objectOf(id mount.Inode) (ids.Object, bool) {
	if id == mount.Root {
		return ids.RootObject, true
	}
	o := ids.Object(id)
	return o, o.Slice() != 0
}

// Find returns the object that a node stands for, and the cues that it was
// reached under; false: the node is not known.
func (t *Table) Find(id mount.Inode) (ids.Object, cue.Set, bool) {
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

// ObjectAt is the object of a node, 0 where the node is not known.
func (t *Table) ObjectAt(id mount.Inode) ids.Object {
	if id == 0 {
		return 0
	}
	o, _, _ := t.Find(id)
	return o
}

// IsDir reports whether a node is known, as a directory.
func (t *Table) IsDir(id mount.Inode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	return n != nil && n.isDir
}

// getLocked returns a node, made where there is none; the mutex is held.
func (t *Table) getLocked(id mount.Inode, o ids.Object) *node {
	n := t.byID[id]
	if n == nil {
		n = &node{id: id, object: o}
		t.byID[id] = n
		t.ageLocked(n)
		t.over.Store(t.limit > 0 && len(t.byID) > t.limit)
	}
	return n
}

// knownLocked returns an object's plain node, or nil; the mutex is held.
func (t *Table) knownLocked(o ids.Object) *node { return t.byID[Plain(o)] }

// ofLocked returns the nodes of an object: the plain one and those below cues; the
// mutex is held.
func (t *Table) ofLocked(o ids.Object) []*node {
	var out []*node
	if n := t.knownLocked(o); n != nil {
		out = append(out, n)
	}
	for _, id := range t.aliases[o] {
		if n := t.byID[id]; n != nil {
			out = append(out, n)
		}
	}
	return out
}

// Look counts one lookup of an object, reached under cues, and returns its
// node.
func (t *Table) Look(o ids.Object, cues cue.Set, dir bool) mount.Inode {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := Plain(o)
	if dir && !cues.Empty() {
		id = t.alias(below{o, cues})
	}
	n := t.getLocked(id, o)
	if dir {
		n.cues, n.isDir = cues, true
	}
	n.lookups++
	t.ageLocked(n)
	n.misnamed = 0 // this very lookup says what the name means
	return id
}

// alias returns the node of a directory under cues.
func (t *Table) alias(b below) mount.Inode {
	id, ok := t.virtual[b]
	if !ok {
		id = t.next
		t.next++
		t.virtual[b] = id
		t.aliases[b.object] = append(t.aliases[b.object], id)
	}
	return id
}

// Forget gives back lookups.
func (t *Table) Forget(id mount.Inode, count uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byID[id]; n != nil {
		n.lookups -= min(count, n.lookups)
		t.dropUnusedLocked(n)
	}
}

// dropUnusedLocked drops a node that the kernel neither knows nor has open; the mutex
// is held.
func (t *Table) dropUnusedLocked(n *node) {
	if n.lookups > 0 || n.opens > 0 || n.id == mount.Root {
		return
	}
	delete(t.byID, n.id)
	n.unlink()
	t.over.Store(t.limit > 0 && len(t.byID) > t.limit)
	t.names -= len(n.cached)
	if dir := t.byID[n.dir]; dir != nil && dir.cached[n.name].child == n.id {
		t.uncacheLocked(dir, n.name)
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

// uncacheLocked forgets that the kernel may believe a name; the mutex is held.
func (t *Table) uncacheLocked(dir *node, name string) {
	if _, ok := dir.cached[name]; ok {
		delete(dir.cached, name)
		t.names--
	}
}

// ageLocked makes a node the one that was looked up last; the mutex is held.
func (t *Table) ageLocked(n *node) { t.oldest.pushBack(n) }
