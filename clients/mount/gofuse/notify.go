//go:build linux || darwin

package gofuse

import (
	"sync"

	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// workers deliver at once, each for its share of the nodes: dropping a name
// waits for the kernel's lock on the directory, which a process may hold while
// it waits for a request of its own, and others should not wait behind it.
const workers = 4

// notifier implements mount.Notifier.
type notifier struct {
	shards [workers]shard
	ended  sync.WaitGroup
	kernel kernel // nil before start
}

var (
	_ mount.Notifier = (*notifier)(nil)
	_ mount.Releaser = (*notifier)(nil)
)

func newNotifier() *notifier {
	n := &notifier{}
	for i := range n.shards {
		n.shards[i].queued = map[notice]struct{}{}
		n.shards[i].filling = map[mount.Inode]chan struct{}{}
		n.shards[i].later = map[mount.Inode]uint8{}
		n.shards[i].wake = make(chan struct{}, 1)
	}
	return n
}

// start begins to deliver; close ends it.
func (n *notifier) start(k kernel) {
	n.kernel = k
	for i := range n.shards {
		n.ended.Add(1)
		go func() {
			defer n.ended.Done()
			n.shards[i].deliver(k)
		}()
	}
}

// close drops what is queued. It does not wait for a worker that the kernel
// holds up; that one ends with the connection, which wait waits for.
func (n *notifier) close() {
	for i := range n.shards {
		s := &n.shards[i]
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.signal()
	}
}

func (n *notifier) wait() { n.ended.Wait() }

func (n *notifier) shard(node mount.Inode) *shard {
	h := uint64(node) * 0x9e3779b97f4a7c15
	return &n.shards[h>>62]
}

// InvalidateInode implements mount.Notifier.
func (n *notifier) InvalidateInode(node mount.Inode, offset, length int64) {
	if offset < 0 {
		n.shard(node).add(notice{kind: dropAttr, node: node})
		return
	}
	n.shard(node).add(notice{kind: dropPages, node: node, offset: offset, length: max(0, length)})
}

// InvalidateEntry implements mount.Notifier.
func (n *notifier) InvalidateEntry(dir mount.Inode, name string) {
	n.shard(dir).add(notice{kind: dropEntry, node: dir, name: name})
}

// Delete implements mount.Notifier.
func (n *notifier) Delete(dir, child mount.Inode, name string) {
	n.shard(dir).add(notice{kind: tellDelete, node: dir, child: child, name: name})
}

// Release implements mount.Releaser.
func (n *notifier) Release(node, dir mount.Inode, name string) {
	n.shard(dir).add(notice{kind: release, node: dir, child: node, name: name})
}

// Drained implements mount.Notifier.
func (n *notifier) Drained(done func()) {
	var left sync.Mutex
	missing := workers
	one := func() {
		left.Lock()
		missing--
		last := missing == 0
		left.Unlock()
		if last {
			done()
		}
	}
	for i := range n.shards {
		n.shards[i].addBarrier(one)
	}
}

// deliver hands notices to the kernel until the shard is closed. A notice that
// is taken leaves the set first, so that a change during its delivery queues
// another.
func (s *shard) deliver(k kernel) {
	var batch []notice
	for {
		<-s.wake
		for {
			s.mu.Lock()
			batch, s.queue = s.queue, batch[:0]
			clear(s.queued)
			closed := s.closed
			s.mu.Unlock()
			if closed {
				s.abandon()
				return
			}
			if len(batch) == 0 {
				break
			}
			for i := range batch {
				s.send(k, &batch[i])
			}
			s.sendUnknown(k)
			clear(batch)
		}
	}
}

// send delivers one notice. A kernel that does not know the name says so, which
// is as good; one that is gone ends the worker by close.
func (s *shard) send(k kernel, m *notice) {
	switch m.kind {
	case dropAttr, dropPages:
		s.sendInode(k, m)
	case dropEntry:
		k.EntryNotify(uint64(m.node), m.name)
	case tellDelete:
		k.DeleteNotify(uint64(m.node), uint64(m.child), m.name)
	case release:
		s.release(k, m)
	case barrier:
		s.sendUnknown(k)
		s.mu.Lock()
		var done func()
		if len(s.drained) > 0 {
			done, s.drained = s.drained[0], s.drained[1:]
		}
		s.mu.Unlock()
		if done != nil {
			done()
		}
	}
}

// release asks the kernel to give up a node, or where it cannot do that, the
// name. A kernel that does not know the message says that it is invalid.
func (s *shard) release(k kernel, m *notice) {
	if p, ok := k.(pruner); ok && !s.byName {
		if p.PruneNotify(uint64(m.child)) != fuse.EINVAL {
			return
		}
		s.byName = true
	}
	if m.name != "" {
		k.EntryNotify(uint64(m.node), m.name)
	}
}
