package inodes

import (
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Name is a name as the kernel knows it.
type Name struct {
	Dir  mount.Inode
	Name string
}

// Notice is what a kernel is to be told. The methods of one Table write it, and a
// Kernel passes it on.
type Notice struct {
	inodes []mount.Inode // attributes and pages
	attrs  []mount.Inode // attributes only
	names  []Name
	nodes  []*node // stale or misnamed until then
	number uint64
	dirs   []ids.Object // whose names are given up
}

// Objects returns the objects of which the kernel may believe what is no longer
// so. One may come twice.
func (n *Notice) Objects() []ids.Object {
	out := make([]ids.Object, len(n.nodes))
	for i, x := range n.nodes {
		out[i] = x.object
	}
	return out
}

// HasNames reports whether a directory's names are given up.
func (n *Notice) HasNames() bool { return len(n.dirs) > 0 }

func (n *Notice) isEmpty() bool { return len(n.inodes)+len(n.attrs)+len(n.names) == 0 }

// markStaleLocked notes that the kernel may believe what is no longer so; the mutex is
// held. The caller invalidates the engine's version after it, never before: an
// open that begins in between looks at changed when it has the version.
func (t *Table) markStaleLocked(n *node, out *Notice) {
	n.stale = t.numbered(n, out)
	n.changed++
}

// markMisnamedLocked notes that the kernel may believe a name of a node that means
// something else by now; the mutex is held.
func (t *Table) markMisnamedLocked(n *node, out *Notice) { n.misnamed = t.numbered(n, out) }

// numbered adds a node to a notice and returns its number.
func (t *Table) numbered(n *node, out *Notice) uint64 {
	if out.number == 0 {
		t.notices++
		out.number = t.notices
	}
	out.nodes = append(out.nodes, n)
	return out.number
}

// Revoke gathers what the kernel must hear when a lease is given up. It returns
// the objects that must not go although they lose their last name: those that are
// open here, and those that may be open in a moment. own reports whether a lease
// on an object itself covers its attributes; Revoke calls it under its mutex.
func (t *Table) Revoke(o ids.Object, item *pb.RevokeRequest_Item, now time.Duration, out *Notice,
	own func(ids.Object) bool) (held []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if item.What == pb.Grant_FILE {
		n := t.knownLocked(o)
		if n == nil {
			return nil
		}
		t.markStaleLocked(n, out)
		out.inodes = append(out.inodes, n.id)
		if n.opens > 0 {
			n.held = n.held || item.Unlinked
			return []uint64{item.Object}
		}
		if item.Unlinked && t.lookups.soonOpen(o, now) {
			return []uint64{item.Object}
		}
		return nil
	}
	if item.What == pb.Grant_NAMES {
		out.dirs = append(out.dirs, o)
	}
	for _, n := range t.ofLocked(o) {
		n.revoked = now
		t.markNamesStaleLocked(n, now, out, own)
	}
	return t.lookups.soonOpenIn(o, now)
}

// Uncovered adds the open files that no lease covers any more, and returns them.
// It calls isCovered under its mutex.
func (t *Table) Uncovered(out *Notice, isCovered func(ids.Object) bool) (list []ids.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.open {
		if isCovered(n.object) {
			continue
		}
		t.markStaleLocked(n, out)
		out.inodes = append(out.inodes, n.id)
		list = append(list, n.object)
	}
	return list
}

// markNamesStaleLocked gathers the names that the kernel may still believe, and the
// files whose attributes only the directory's lease covered. The other files stay
// as they are: a kernel that is told of a file ignores the attributes that it
// asked for a moment before, and a process that just took a lock would read up to
// the old size. The mutex is held.
func (t *Table) markNamesStaleLocked(n *node, now time.Duration, out *Notice, own func(ids.Object) bool) {
	out.attrs = append(out.attrs, n.id)
	for name, x := range n.cached {
		if x.until <= now {
			continue
		}
		out.names = append(out.names, Name{n.id, name})
		child := t.byID[x.child]
		switch {
		case child == nil:
		case own(child.object):
			t.markMisnamedLocked(child, out)
		default:
			t.markMisnamedLocked(child, out)
			t.markStaleLocked(child, out)
			out.attrs = append(out.attrs, child.id)
		}
	}
	t.names -= len(n.cached)
	n.cached = nil
}

// no says of every object that nothing covers it.
func no(ids.Object) bool { return false }

// ChangeNames gathers what the kernel must hear when names of a directory changed
// that was reached under cues: the directory's other nodes have the names too.
// some is false where there are no other nodes.
func (t *Table) ChangeNames(dir ids.Object, cues cue.Set, changed []string) (out Notice, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.aliases[dir]) == 0 {
		return out, false
	}
	self := Plain(dir)
	if !cues.Empty() {
		self = t.virtual[below{dir, cues}]
	}
	for _, n := range t.ofLocked(dir) {
		if n.id == self {
			continue
		}
		out.attrs = append(out.attrs, n.id)
		for _, name := range changed {
			if x, ok := n.cached[name]; ok {
				t.uncacheLocked(n, name)
				out.names = append(out.names, Name{n.id, name})
				if x.child != 0 {
					out.attrs = append(out.attrs, x.child)
				}
			}
		}
	}
	return out, true
}

// LookAnew gathers names that the kernel must look up again, and the nodes that it
// takes them to mean. An open of these is refused until the kernel has heard.
func (t *Table) LookAnew(names []Name, children []mount.Inode) (out Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range names {
		out.names = append(out.names, at)
		if dir := t.byID[at.Dir]; dir != nil {
			t.uncacheLocked(dir, at.Name)
		}
	}
	for _, child := range children {
		if n := t.byID[child]; n != nil {
			t.markStaleLocked(n, &out)
			n.misnamed = out.number
			out.attrs = append(out.attrs, n.id)
		}
	}
	return out
}

// markTold notes that the kernel has been told.
func (t *Table) markTold(n *Notice) {
	if len(n.nodes) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range n.nodes {
		if x.stale == n.number {
			x.stale = 0
		}
		if x.misnamed == n.number {
			x.misnamed = 0
		}
	}
}

// ForgetObject gathers everything that the kernel may believe of an object.
func (t *Table) ForgetObject(o ids.Object, now time.Duration) (out Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.ofLocked(o) {
		t.forgetNodeLocked(n, now, &out)
	}
	return out
}

// ForgetOpen gathers what the kernel may believe of the open files that a
// condition holds for. It calls which under its mutex.
func (t *Table) ForgetOpen(now time.Duration, which func(ids.Object) bool) (out Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.open {
		if which(n.object) {
			t.forgetNodeLocked(n, now, &out)
		}
	}
	return out
}

// ForgetAll gathers everything that the kernel may believe, the names as far as it
// believed them at a time or later.
func (t *Table) ForgetAll(since time.Duration) (out Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.byID {
		t.forgetNodeLocked(n, since, &out)
	}
	return out
}

// forgetNodeLocked adds everything that the kernel may believe of a node; the mutex is
// held.
func (t *Table) forgetNodeLocked(n *node, since time.Duration, out *Notice) {
	t.markStaleLocked(n, out)
	out.inodes = append(out.inodes, n.id)
	t.markNamesStaleLocked(n, since, out, no)
}
