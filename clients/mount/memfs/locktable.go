package memfs

import (
	"slices"

	"cartwheel.dev/clients/mount"
)

// lockOwner is a holder over all views; flock and POSIX locks never meet.
type lockOwner struct {
	view  int
	owner mount.LockOwner
	whole bool
}

type heldLock struct {
	owner  lockOwner
	handle mount.Handle // through which it was taken last
	lock   mount.Lock
}

// lockTable holds the locks of one file: of one owner they never overlap.
type lockTable struct {
	held []heldLock
	wake chan struct{} // closed when a lock is given up; nil: nobody waits
	used bool          // a process's ranges were locked: each close must be told
}

// conflict finds a lock that keeps owner from having l.
func (t *lockTable) conflict(owner lockOwner, l mount.Lock) *heldLock {
	for n := range t.held {
		h := &t.held[n]
		if h.owner == owner || h.owner.whole != owner.whole {
			continue
		}
		if h.lock.Type == mount.ReadLock && l.Type == mount.ReadLock {
			continue
		}
		if h.lock.Start <= l.End && l.Start <= h.lock.End {
			return h
		}
	}
	return nil
}

// set replaces what owner holds in the range of l by l.
func (t *lockTable) set(owner lockOwner, through mount.Handle, l mount.Lock) {
	kept := make([]heldLock, 0, len(t.held)+2)
	for _, h := range t.held {
		if h.owner != owner || h.lock.End < l.Start || h.lock.Start > l.End {
			kept = append(kept, h)
			continue
		}
		if h.lock.Start < l.Start {
			left := h
			left.lock.End = l.Start - 1
			kept = append(kept, left)
		}
		if h.lock.End > l.End {
			right := h
			right.lock.Start = l.End + 1
			kept = append(kept, right)
		}
	}
	if l.Type != mount.Unlock {
		kept = append(kept, heldLock{owner, through, l})
	}
	t.held = kept
	t.wakeAll()
}

func (t *lockTable) wakeAll() {
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// drop gives up the locks that match.
func (t *lockTable) drop(match func(heldLock) bool) {
	before := len(t.held)
	t.held = slices.DeleteFunc(t.held, match)
	if len(t.held) != before {
		t.wakeAll()
	}
}
