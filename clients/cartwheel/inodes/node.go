package inodes

import (
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// cachedName is a name that the kernel may believe.
type cachedName struct {
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
	// paged: the kernel may have pages, because the node was opened, or its size
	// was set, since the kernel knows it.
	paged bool
	// filling is closed when the kernel has the pages that come with the first
	// open. Every other open waits for that.
	filling chan struct{}
	// stale is the number of the revocation that the kernel may not have heard of
	// yet; 0: there is none. Until the kernel has heard, its attributes and pages of
	// the node may be old. changed counts such revocations.
	stale, changed uint64
	// misnamed is the same for names: one may lead here that means something
	// else.
	misnamed uint64
	// revoked is when names of this directory were last given up.
	revoked time.Duration
	tidied  time.Duration // when cached was last tidied because it was full
	// held: the active knows that the object is open here though it may have
	// no name.
	held bool
	// locked: a process locked byte ranges of the file through this mount. Every
	// close of the file gives them up. The close of a descriptor that was opened
	// before the lock is heard of if a writer had the file open then: it is the one
	// that locks.
	locked bool
	cached map[string]cachedName
	// limited is under which cues that limit an operation's time the file was looked
	// up last, where that was the last lookup of it.
	limited *hint
	// dir and name led here last. prev and next are the neighbours by age.
	dir        mount.Inode
	name       string
	isDir      bool
	last       *mount.Attr // of a directory, as it was shown last
	prev, next *node
}

// unlink takes a node out of the list by age.
func (n *node) unlink() {
	if n.prev != nil {
		n.prev.next, n.next.prev = n.next, n.prev
		n.prev, n.next = nil, nil
	}
}

// pushBack puts a node at the end of a ring, whose head is n.
func (n *node) pushBack(last *node) {
	last.unlink()
	last.prev, last.next = n.prev, n
	last.prev.next, last.next.prev = last, last
}
