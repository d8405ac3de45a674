//go:build linux || darwin

package gofuse

import (
	"time"

	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A kernel learns of a node when the process that asked for it takes the answer,
// some time after the mount has given it. What it is told of the node in between
// it does not know what to do with, and then it believes the answer, which is
// older. So it is told again.

// firstAgain is when; nobody who waits for the notice to be delivered goes on
// before. It suffices unless that process gets no processor time.
const firstAgain = time.Millisecond

// laterAgain is when for those processes. A node that is still not known then was
// given up by the kernel, and its FORGET is on the way.
var laterAgain = [...]time.Duration{10 * time.Millisecond, 100 * time.Millisecond}

// A notice that comes late does harm where none is needed any more: the kernel
// ignores the attributes in an answer that it waits for while it is told, and a
// process that just took a lock then reads up to the old size. So once a notice
// about the node has arrived, it is not told again.

// sendInode delivers a notice about a node.
func (s *shard) sendInode(k kernel, m *notice) {
	if m.again > 1 && !s.waits(m.node) {
		return
	}
	offset, length := int64(-1), int64(0)
	if m.kind == dropPages {
		s.awaitFill(m.node)
		offset, length = m.offset, m.length
	}
	switch known := k.InodeNotify(uint64(m.node), offset, length) != fuse.ENOENT; {
	case known:
		s.forgetLater(m.node)
	case m.again == 0:
		s.unknown = append(s.unknown, *m)
	default:
		s.sendLater(m)
	}
}

// sendUnknown delivers the notices again whose nodes the kernel did not know.
func (s *shard) sendUnknown(k kernel) {
	if len(s.unknown) == 0 {
		return
	}
	<-time.NewTimer(firstAgain).C
	for i := range s.unknown {
		s.unknown[i].again = 1
		s.sendInode(k, &s.unknown[i])
	}
	s.unknown = s.unknown[:0]
}

// sendLater queues a notice again after a while, as long as not too many are. A
// kernel that does not know a node has no pages of it, so that only attributes
// are left to be dropped.
func (s *shard) sendLater(m *notice) {
	again := notice{kind: dropAttr, node: m.node, again: m.again + 1}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := int(m.again) - 1
	if i >= len(laterAgain) {
		delete(s.later, m.node)
		return
	}
	if at, waits := s.later[m.node]; s.closed || waits && at == again.again || len(s.later) >= collapseAt {
		return
	}
	s.later[m.node] = again.again
	time.AfterFunc(laterAgain[i], func() { s.add(again) })
}

// waits reports whether a node is still to be told of again.
func (s *shard) waits(node mount.Inode) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.later[node]
	return waits
}

// forgetLater notes that the kernel has heard of a node.
func (s *shard) forgetLater(node mount.Inode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.later, node)
}
