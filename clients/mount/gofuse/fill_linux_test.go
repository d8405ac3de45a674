package gofuse

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// stored is a kernel that takes pages too.
type stored struct{ recorder }

func (s *stored) InodeStore(node uint64, data []byte) fuse.Status {
	s.note("store %d %s", node, data)
	return fuse.OK
}

// TestFill_PagesAreDroppedBehindIt changes the content after the fill asked
// whether it is still current. What was filled is dropped, and not filled again
// behind that.
func TestFill_PagesAreDroppedBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, k := newNotifier(), &stored{}
		n.start(k)
		asked := make(chan struct{})
		filled := make(chan bool)
		go func() { filled <- n.Fill(7, []byte("old"), func() bool { <-asked; return true }) }()
		synctest.Wait()
		n.InvalidateInode(7, 0, 0)
		synctest.Wait() // the worker has it
		if n.Fill(7, []byte("other"), func() bool { return true }) {
			t.Error("two fill one node at once")
		}
		close(asked)
		if !<-filled {
			t.Error("nothing was filled")
		}
		drained(t, n)
		if n.Fill(7, []byte("late"), func() bool { return false }) {
			t.Error("what does not hold any more was filled")
		}
		want := []string{"store 7 old", "inode 7 0 0"}
		if fmt.Sprint(k.told) != fmt.Sprint(want) {
			t.Errorf("the kernel was told %q, want %q", k.told, want)
		}
		n.close()
		n.wait()
		if n.Fill(7, []byte("closed"), func() bool { return true }) {
			t.Error("a queue that was closed fills")
		}
	})
}

// TestFill_HoldsUpItsInodeOnly holds up a fill. Notices about other inodes go
// out meanwhile.
func TestFill_HoldsUpItsInodeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, k := newNotifier(), &stored{}
		n.start(k)
		asked, filled := make(chan struct{}), make(chan bool)
		go func() { filled <- n.Fill(7, nil, func() bool { <-asked; return false }) }()
		synctest.Wait()
		n.InvalidateInode(7, -1, 0) // no pages
		drained(t, n)
		n.InvalidateInode(8, 0, 0)
		drained(t, n)
		if want := "[inode 7 -1 0 inode 8 0 0]"; fmt.Sprint(k.told) != want {
			t.Errorf("the kernel was told %v, want %s", k.told, want)
		}
		close(asked)
		if <-filled {
			t.Error("what did not hold was filled")
		}
		n.close()
		n.wait()
	})
}
