//go:build linux || darwin

package gofuse

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// recorder is a kernel that notes what it is told, and may hold it up.
type recorder struct {
	mu   sync.Mutex
	told []string
	gate chan struct{} // nil: open
}

func (r *recorder) note(format string, args ...any) fuse.Status {
	if r.gate != nil {
		<-r.gate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, fmt.Sprintf(format, args...))
	return fuse.OK
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.told)
}

func (r *recorder) InodeNotify(node uint64, offset, length int64) fuse.Status {
	return r.note("inode %d %d %d", node, offset, length)
}

func (r *recorder) EntryNotify(parent uint64, name string) fuse.Status {
	return r.note("entry %d %s", parent, name)
}

func (r *recorder) DeleteNotify(parent, child uint64, name string) fuse.Status {
	return r.note("delete %d %d %s", parent, child, name)
}

func drained(t *testing.T, n *notifier) {
	t.Helper()
	done := make(chan struct{})
	n.Drained(func() { close(done) })
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the queue is never drained")
	}
}

func TestNotifier_KeepsTheOrder(t *testing.T) {
	n, k := newNotifier(), &recorder{}
	n.start(k)
	n.InvalidateInode(7, -1, 0)
	n.InvalidateInode(7, 4096, 10)
	n.InvalidateEntry(7, "a")
	n.Delete(7, 8, "b")
	drained(t, n)
	want := []string{"inode 7 -1 0", "inode 7 4096 10", "entry 7 a", "delete 7 8 b"}
	if fmt.Sprint(k.told) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", k.told, want)
	}
	n.close()
	n.wait()
	drained(t, n) // of a closed one: at once
}

func TestNotifier_HeldUpNoticesCollapse(t *testing.T) {
	n, k := newNotifier(), &recorder{gate: make(chan struct{})}
	n.start(k)
	const node = mount.Inode(5)
	n.InvalidateInode(node, 0, 1) // the worker takes this one and is held up
	for range 3 {
		for i := range 10 * collapseAt {
			n.InvalidateInode(node, int64(i)*4096, 4096)
		}
		n.InvalidateEntry(node, "name")
	}
	s := n.shard(node)
	s.mu.Lock()
	queued := len(s.queue)
	s.mu.Unlock()
	if queued > 2*collapseAt {
		t.Errorf("%d notices are queued", queued)
	}
	close(k.gate)
	drained(t, n)
	whole, names := 0, 0
	for _, told := range k.told {
		switch told {
		case "inode 5 0 0":
			whole++
		case "entry 5 name":
			names++
		}
	}
	if whole == 0 || names == 0 {
		t.Errorf("the whole file was dropped %d times, the name %d times", whole, names)
	}
	n.close()
	n.wait()
}

// forgetful is a kernel that does not know a node until it was told of it some
// times.
type forgetful struct {
	recorder
	unknown atomic.Int32
}

func (f *forgetful) InodeNotify(node uint64, offset, length int64) fuse.Status {
	f.recorder.InodeNotify(node, offset, length)
	if f.unknown.Add(-1) >= 0 {
		return fuse.ENOENT
	}
	return fuse.OK
}

// TestNotifier_RepeatsNothingTheKernelTook tells the kernel of an inode. Once a
// notice arrived, the earlier ones that it did not understand are not repeated:
// it would ignore the attributes that it asks for meanwhile.
func TestNotifier_RepeatsNothingTheKernelTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, k := newNotifier(), &forgetful{}
		k.unknown.Store(2)
		n.start(k)
		n.InvalidateInode(7, 0, 0)
		drained(t, n)
		n.InvalidateInode(7, -1, 0) // which arrives
		drained(t, n)
		told := k.count()
		time.Sleep(time.Second)
		if got := k.count(); told != 3 || got != told {
			t.Errorf("told %d times while the queue was drained, want 3, and %d times later, want 0", told, got-told)
		}
		n.close()
		n.wait()
	})
}

// TestNotifier_RepeatsForAnUnknownInode tells a kernel of an inode that it does
// not know yet. The notice is repeated before the operations go on that wait for
// it, and some times afterwards.
func TestNotifier_RepeatsForAnUnknownInode(t *testing.T) {
	for _, c := range []struct {
		unknown, first, all int
	}{{0, 1, 1}, {1, 2, 2}, {2, 2, 3}, {3, 2, 4}, {100, 2, 4}} {
		synctest.Test(t, func(t *testing.T) {
			n, k := newNotifier(), &forgetful{}
			k.unknown.Store(int32(c.unknown))
			n.start(k)
			n.InvalidateInode(7, -1, 0)
			drained(t, n)
			if got := k.count(); got != c.first {
				t.Errorf("unknown %d times: told %d times when the queue was drained, want %d", c.unknown, got, c.first)
			}
			time.Sleep(time.Second)
			if got := k.count(); got != c.all {
				t.Errorf("unknown %d times: told %d times, want %d", c.unknown, got, c.all)
			}
			n.close()
			n.wait()
		})
	}
}

// TestNotifier_BoundsRepeatedNotices has the kernel give up very many inodes.
// Not as many notices wait.
func TestNotifier_BoundsRepeatedNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, k := newNotifier(), &forgetful{}
		k.unknown.Store(math.MaxInt32)
		n.start(k)
		for i := range 20 * collapseAt {
			n.InvalidateInode(mount.Inode(i), -1, 0)
		}
		drained(t, n)
		for i := range n.shards {
			s := &n.shards[i]
			s.mu.Lock()
			if n := len(s.later); n == 0 || n > collapseAt {
				t.Errorf("%d notices wait to be told again", n)
			}
			s.mu.Unlock()
		}
		n.close()
		n.wait()
		time.Sleep(time.Second) // their timers end too
	})
}

// TestNotifier_OneDirectoryHoldsUpNoOthers holds up one directory, as a process
// that holds its lock does. The notices of the others go on, and so do the
// callers that queue.
func TestNotifier_OneDirectoryHoldsUpNoOthers(t *testing.T) {
	n := newNotifier()
	k := &choosy{held: 3, gate: make(chan struct{}), told: make(chan uint64, 100)}
	n.start(k)
	n.InvalidateEntry(3, "held up")
	other := mount.Inode(4)
	for n.shard(other) == n.shard(3) {
		other++
	}
	n.InvalidateEntry(other, "free")
	select {
	case got := <-k.told:
		if got != uint64(other) {
			t.Errorf("told of %d", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("another directory's notice waits")
	}
	close(k.gate)
	drained(t, n)
	n.close()
	n.wait()
}

type choosy struct {
	held uint64
	gate chan struct{}
	told chan uint64
}

func (c *choosy) EntryNotify(parent uint64, _ string) fuse.Status {
	if parent == c.held {
		<-c.gate
	}
	c.told <- parent
	return fuse.OK
}

func (c *choosy) InodeNotify(uint64, int64, int64) fuse.Status { return fuse.OK }

func (c *choosy) DeleteNotify(uint64, uint64, string) fuse.Status { return fuse.OK }
