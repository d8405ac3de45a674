//go:build linux || darwin

package gofuse

import (
	"time"

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

// sendInode delivers a notice about a node.
func (s *shard) sendInode(k kernel, m *notice) {
	offset, length := int64(-1), int64(0)
	if m.kind == dropPages {
		s.awaitFill(m.node)
		offset, length = m.offset, m.length
	}
	if k.InodeNotify(uint64(m.node), offset, length) != fuse.ENOENT {
		return
	}
	if m.again == 0 {
		s.unknown = append(s.unknown, *m)
	} else {
		s.sendLater(*m)
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

// sendLater queues a notice again after a while, as long as not too many are.
func (s *shard) sendLater(m notice) {
	i := int(m.again) - 1
	if i >= len(laterAgain) {
		return
	}
	m.again++
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.later >= collapseAt {
		return
	}
	s.later++
	time.AfterFunc(laterAgain[i], func() {
		s.mu.Lock()
		s.later--
		s.mu.Unlock()
		s.add(m)
	})
}
