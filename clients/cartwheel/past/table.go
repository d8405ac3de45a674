package past

import (
	"container/list"
	"sync"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// firstNode is where the numbers of inodes below .Snapshot begin. Those of the present
// are objects' IDs, which are from twice that on, and small numbers of directories
// under cues.
const firstNode mount.Inode = 1 << (ids.NumberBits - 1)

// isPast reports whether an inode is one of those below .Snapshot.
func isPast(id mount.Inode) bool { return id >= firstNode && id < 2*firstNode }

// place is an object at a time, reached under cues.
type place struct {
	object ids.Object
	at     hlc.Time
	cues   cue.Set
}

// node is an inode that the kernel knows. What it stands for never changes.
type node struct {
	place
	id mount.Inode

	mu   sync.Mutex // guards below; held over no call
	attr *pb.Attr   // without small content; nil: not known. It must not be changed
	// ticket opens the object in the past; nil: none came.
	ticket []byte
}

// learn keeps attributes, and returns them as they are kept.
func (n *node) learn(a *pb.Attr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(a.Ticket) > 0 {
		n.ticket = a.Ticket
	}
	n.attr = a
}

// note keeps a ticket that came without attributes.
func (n *node) note(ticket []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(ticket) > 0 {
		n.ticket = ticket
	}
}

// known returns the attributes, nil where they are not known, and the ticket.
func (n *node) known() (a *pb.Attr, ticket []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.attr, n.ticket
}

// counted is a node with what the kernel knows of it.
type counted struct {
	node    *node
	lookups uint64
	opens   int
	dir     mount.Inode // where it was looked up last, under this name
	name    string
	age     *list.Element
}

// table has the inodes that the kernel knows. Its lock is held over no call but those
// that queue for the kernel.
type table struct {
	limit int
	ages  ages
	parts parts

	mu        sync.Mutex // guards below
	next      mount.Inode
	byID      map[mount.Inode]*counted
	byPlace   map[place]*counted
	order     *list.List // of *counted, the one looked up last behind
	kernel    mount.Notifier
	releasing bool
}

func newTable(limit int) *table {
	return &table{limit: limit, next: firstNode, byID: map[mount.Inode]*counted{}, byPlace: map[place]*counted{}, order: list.New()}
}

func (t *table) notify(n mount.Notifier) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kernel = n
}

// get returns a node that the kernel knows, or nil.
func (t *table) get(id mount.Inode) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.byID[id]; c != nil {
		return c.node
	}
	return nil
}

// look counts one lookup of a place by a name of a directory, and returns its node.
func (t *table) look(p place, dir mount.Inode, name string) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byPlace[p]
	if c == nil {
		c = &counted{node: &node{place: p, id: t.next}}
		t.next++
		t.byID[c.node.id], t.byPlace[p] = c, c
		c.age = t.order.PushBack(c)
	}
	c.lookups++
	c.dir, c.name = dir, name
	t.order.MoveToBack(c.age)
	t.releaseLocked()
	return c.node
}

// forget gives back lookups.
func (t *table) forget(id mount.Inode, count uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byID[id]
	if c == nil {
		return
	}
	c.lookups -= min(count, c.lookups)
	t.dropLocked(c)
}

// open counts the open files of a node; by is 1 or -1.
func (t *table) open(id mount.Inode, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.byID[id]; c != nil {
		c.opens += by
		t.dropLocked(c)
	}
}

// dropLocked drops a node that neither the kernel nor a handle needs; the mutex is held.
func (t *table) dropLocked(c *counted) {
	if c.lookups == 0 && c.opens == 0 {
		delete(t.byID, c.node.id)
		delete(t.byPlace, c.node.place)
		t.order.Remove(c.age)
	}
}

// slack is the part of the limit by which the number of nodes swings.
const slack = 8

// releaseLocked asks the kernel to give up the nodes that were looked up the longest
// time ago, where there are more than the limit. What is in use stays. The mutex is
// held.
func (t *table) releaseLocked() {
	kernel, can := t.kernel.(mount.Releaser)
	if t.limit <= 0 || len(t.byID) <= t.limit || t.releasing || !can {
		return
	}
	t.releasing = true
	for left := len(t.byID) - t.limit + t.limit/slack; left > 0; left-- {
		c := t.order.Front().Value.(*counted)
		t.order.MoveToBack(c.age)
		if c.opens > 0 {
			continue
		}
		name := c.name
		if a, _ := c.node.known(); a != nil && a.Mode&mount.TypeMask == mount.TypeDir {
			name = "" // a kernel that gives names up keeps directories
		}
		kernel.Release(c.node.id, c.dir, name)
	}
	t.kernel.Drained(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.releasing = false
	})
}
