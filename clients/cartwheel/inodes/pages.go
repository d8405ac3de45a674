package inodes

import (
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
)

// Fill is the right to give the kernel the first pages of a node. Until End is
// called, every other open of the node waits.
type Fill struct {
	t *Table
	n *node
}

// Inode is the node.
func (f *Fill) Inode() mount.Inode { return f.n.id }

// IsCurrent reports whether the kernel was told of everything that became old.
func (f *Fill) IsCurrent() bool {
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	return f.n.stale == 0
}

// End lets the other opens go on.
func (f *Fill) End() {
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	close(f.n.filling)
	f.n.filling = nil
}

// pageLocked notes that the kernel may have pages of a node from now on. first is true
// where the caller may fill them and no open came before. Otherwise filling, if it
// is not nil, is what to wait for. The mutex is held.
func (t *Table) pageLocked(n *node, may bool) (first bool, filling chan struct{}) {
	first = may && !n.paged && n.stale == 0
	n.paged = true
	if first {
		n.filling = make(chan struct{})
	}
	return first, n.filling
}

// paged is page for a caller that fills nothing.
func (t *Table) paged(id mount.Inode) (filling chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byID[id]; n != nil {
		_, filling = t.pageLocked(n, false)
	}
	return filling
}

// AwaitFill returns when no open fills the pages of a node any more, nor will: its
// content is about to be changed through the kernel.
func (t *Table) AwaitFill(id mount.Inode) {
	if filling := t.paged(id); filling != nil {
		<-filling
	}
}

// AdvancePages moves the version of the kernel's pages on.
func (t *Table) AdvancePages(o ids.Object, from, to uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.knownLocked(o); n != nil && n.pages == from {
		n.pages = to
	}
}

// SetPages notes that the kernel's pages of a file are of a version, and reports
// whether older ones must be dropped for that.
func (t *Table) SetPages(o ids.Object, version uint64) (drop bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.knownLocked(o)
	if n == nil {
		return false
	}
	drop = n.pages != version || n.stale != 0
	n.pages = version
	return drop
}

// RememberAttr keeps what was shown of a directory.
func (t *Table) RememberAttr(id mount.Inode, a *mount.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.byID[id]; n != nil {
		if n.last == nil {
			n.last = &mount.Attr{}
		}
		*n.last = *a
	}
}

// RemovedAttr returns what is shown of a directory that is gone: a process may
// have it open or work in it. It has no name and no content. Where a name that
// led there may mean something else by now, there is nothing to show.
func (t *Table) RemovedAttr(id mount.Inode) (a mount.Attr, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	if n == nil || n.last == nil || n.misnamed != 0 {
		return a, false
	}
	a = *n.last
	a.Nlink = 0
	return a, true
}
