package inodes

import (
	"cartwheel.dev/clients/mount"
)

// The kernel keeps a node for as long as it has memory for it, and this client
// keeps a record of each. Both would grow with every file that was ever looked
// at. A Table therefore has a limit. Beyond it, the client asks the kernel to give
// up the nodes that were looked up the longest time ago. What is in use stays
// known, however much it is.

// slack is the part of the limit by which the number of nodes swings. The client
// asks the kernel to come down to so much below the limit. When there are so many
// above it, names are listed without their attributes.
const slack = 8

// given is a node that the kernel is asked to give up.
type given struct {
	node, dir mount.Inode
	name      string
}

// IsFull reports whether the kernel knows more nodes than the limit.
func (t *Table) IsFull() bool { return t.over.Load() }

// IsCrowded reports whether the kernel knows too many nodes to be told of more
// than it asks for.
func (t *Table) IsCrowded() bool {
	if !t.IsFull() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limit > 0 && len(t.byID) > t.limit+t.limit/slack
}

// excess returns the oldest nodes where there are more than the limit, to be
// given up, and nothing while others are. They become the youngest: what the
// kernel keeps is not asked for again soon.
func (t *Table) excess() []given {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limit <= 0 || len(t.byID) <= t.limit || t.releasing {
		return nil
	}
	most := len(t.byID) - t.limit + t.limit/slack
	out := make([]given, 0, most)
	for n, left := t.oldest.next, len(t.byID); left > 0 && len(out) < most; left-- {
		next := n.next
		t.ageLocked(n)
		if n.opens == 0 && n.id != mount.Root {
			g := given{node: n.id, dir: n.dir}
			if !n.isDir {
				g.name = n.name
			}
			out = append(out, g)
		}
		n = next
	}
	t.releasing = len(out) > 0
	return out
}

// released notes that the kernel has heard which nodes to give up.
func (t *Table) released() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.releasing = false
}
