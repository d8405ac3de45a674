package memfs

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// unlockAll gives up everything that owner holds on i.
func (s *Store) unlockAll(i *inode, owner lockOwner) {
	i.locks.drop(func(h heldLock) bool { return h.owner == owner })
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
