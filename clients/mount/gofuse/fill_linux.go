package gofuse

import (
	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

var _ mount.Filler = (*notifier)(nil)

// filler is a kernel that takes pages unasked.
type filler interface {
	InodeStore(node uint64, data []byte) fuse.Status
}

// Fill implements mount.Filler. The kernel may hold it up while it drops pages
// of the node or truncates it, or a read of it is under way: none of that waits
// for a notice of this queue.
func (n *notifier) Fill(node mount.Inode, data []byte, still func() bool) bool {
	k, can := n.kernel.(filler)
	s := n.shard(node)
	if !can || !s.beginFill(node) {
		return false
	}
	defer s.endFill(node)
	return still() && k.InodeStore(uint64(node), data).Ok()
}

// beginFill has notices about a node's pages wait, unless they do already.
func (s *shard) beginFill(node mount.Inode) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.filling[node] != nil {
		return false
	}
	s.filling[node] = make(chan struct{})
	return true
}

func (s *shard) endFill(node mount.Inode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.filling[node])
	delete(s.filling, node)
}
