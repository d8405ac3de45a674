package memfs

import (
	"context"
	"slices"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
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

// unlockAll gives up everything that owner holds on i.
func (s *Store) unlockAll(i *inode, owner lockOwner) {
	i.locks.drop(func(h heldLock) bool { return h.owner == owner })
}

// drop gives up the locks that match.
func (t *lockTable) drop(match func(heldLock) bool) {
	before := len(t.held)
	t.held = slices.DeleteFunc(t.held, match)
	if len(t.held) != before {
		t.wakeAll()
	}
}

// GetLock implements mount.Locks.
func (v *View) GetLock(_ context.Context, _ mount.Caller, node mount.Inode, _ mount.Handle, l mount.Lock) (mount.Lock, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return mount.Lock{}, err
	}
	if h := i.locks.conflict(v.lockOwner(l), l); h != nil {
		found := h.lock
		if h.owner.view != v.id {
			found.PID = 0
		}
		return found, nil
	}
	l.Type = mount.Unlock
	return l, nil
}

func (v *View) lockOwner(l mount.Lock) lockOwner {
	return lockOwner{view: v.id, owner: l.Owner, whole: l.Whole}
}

// SetLock implements mount.Locks.
func (v *View) SetLock(ctx context.Context, _ mount.Caller, node mount.Inode, h mount.Handle, l mount.Lock, wait bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return err
	}
	owner := v.lockOwner(l)
	if l.Whole && l.Type != mount.Unlock {
		// An flock that changes its strength gives up the old one first.
		v.unlockAll(i, owner)
	}
	for l.Type != mount.Unlock {
		in := i.locks.conflict(owner, l)
		if in == nil {
			break
		}
		if !wait {
			return fail(fault.Again)
		}
		if !l.Whole && v.cycle(owner, in.owner) {
			return fail(fault.Deadlock)
		}
		if err := v.waitFor(ctx, i, owner, in.owner); err != nil {
			return err
		}
	}
	i.locks.set(owner, h, l)
	i.locks.used = i.locks.used || !l.Whole
	return nil
}

// cycle reports whether holder waits, over others, for a lock of owner.
func (s *Store) cycle(owner, holder lockOwner) bool {
	for at, ok := holder, true; ok; at, ok = s.waiting[at] {
		if at == owner {
			return true
		}
	}
	return false
}

// waitFor lets go of the store until some lock on i was given up.
func (s *Store) waitFor(ctx context.Context, i *inode, owner, holder lockOwner) error {
	if i.locks.wake == nil {
		i.locks.wake = make(chan struct{})
	}
	wake := i.locks.wake
	s.waiting[owner] = holder
	s.mu.Unlock()
	var err error
	select {
	case <-wake:
	case <-ctx.Done():
		err = fail(fault.Interrupted)
	}
	s.mu.Lock()
	delete(s.waiting, owner)
	return err
}
