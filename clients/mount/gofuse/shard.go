//go:build linux || darwin

package gofuse

import (
	"sync"

	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// kernel is what the queue delivers to; *fuse.Server in life.
type kernel interface {
	InodeNotify(node uint64, offset, length int64) fuse.Status
	EntryNotify(parent uint64, name string) fuse.Status
	DeleteNotify(parent, child uint64, name string) fuse.Status
}

// collapseAt is the length of a worker's queue from which on ranges become
// whole files.
const collapseAt = 1024

// pruner is a kernel that gives up nodes by their numbers, since Linux 6.18.
type pruner interface {
	PruneNotify(node uint64) fuse.Status
}

type noticeKind uint8

const (
	dropAttr noticeKind = iota
	dropPages
	dropEntry
	tellDelete
	release
	barrier
)

// notice is one message to the kernel. It is comparable, so that the same one
// is queued only once.
type notice struct {
	kind           noticeKind
	node           mount.Inode // the directory of names
	child          mount.Inode // of tellDelete and release
	offset, length int64       // of dropPages
	name           string
	again          uint8 // how often the kernel did not know the node
}

// shard is the queue of one worker.
type shard struct {
	mu      sync.Mutex
	queue   []notice // waiting; the worker takes all of it at once
	queued  map[notice]struct{}
	drained []func()                      // one for each barrier in queue and at the worker
	filling map[mount.Inode]chan struct{} // closed when the kernel has the pages
	wake    chan struct{}
	closed  bool
	later   map[mount.Inode]uint8 // nodes to be told of again, with the number of that notice
	// Of the worker: byName, that the kernel gives up names only, and unknown, the
	// notices of this batch about nodes that the kernel does not know yet.
	byName  bool
	unknown []notice
}

func (s *shard) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *shard) add(m notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if m.kind == dropPages && len(s.queue) >= collapseAt {
		m.offset, m.length = 0, 0
	}
	if _, there := s.queued[m]; there {
		return
	}
	s.queued[m] = struct{}{}
	s.queue = append(s.queue, m)
	s.signal()
}

func (s *shard) addBarrier(done func()) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		done()
		return
	}
	s.queue = append(s.queue, notice{kind: barrier})
	s.drained = append(s.drained, done)
	s.mu.Unlock()
	s.signal()
}

// abandon answers the barriers that nobody will deliver any more.
func (s *shard) abandon() {
	s.mu.Lock()
	left := s.drained
	s.drained, s.queue = nil, nil
	s.mu.Unlock()
	for _, done := range left {
		done()
	}
}

// awaitFill waits until the kernel has the pages that it is being given. One who
// begins to give some later knows what this worker is about to tell.
func (s *shard) awaitFill(node mount.Inode) {
	s.mu.Lock()
	filled := s.filling[node]
	s.mu.Unlock()
	if filled != nil {
		<-filled
	}
}
