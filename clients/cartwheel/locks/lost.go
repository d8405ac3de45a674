package locks

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// claimed notes that what is held in a slice goes with another session now.
func (t *table) claimed(id ids.Slice, at lockSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, list := range t.held {
		for i := range list {
			if o.Slice() == id {
				list[i].at = at
			}
		}
	}
}

// any returns one lock that is held and matches, or nil.
func (t *table) any(which func(ids.Object, *holding) bool) *pb.Lock {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, list := range t.held {
		for i := range list {
			if which(o, &list[i]) {
				return toWire(o, list[i].lock)
			}
		}
	}
	return nil
}

// doubt begins a time in which a slice's locks cannot be trusted, which ends
// when known is called; nil where one is under way.
func (t *table) doubt(id ids.Slice) (known func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.doubts[id] != nil {
		return nil
	}
	over := make(chan struct{})
	t.doubts[id] = over
	return func() {
		t.mu.Lock()
		delete(t.doubts, id)
		t.mu.Unlock()
		close(over)
	}
}

// closed forgets a handle.
func (t *table) closed(h mount.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.lost, h)
}

// MayCommit waits until it is known whether the locks on an object are held, and
// fails where bytes that were written under one are not to be committed.
func (k *Keeper) MayCommit(ctx context.Context, o ids.Object) error {
	t := &k.table
	for {
		t.mu.Lock()
		over := t.doubts[o.Slice()]
		_, spoiled := t.spoiled[o]
		if over == nil || len(t.held[o]) == 0 {
			delete(t.spoiled, o)
			t.mu.Unlock()
			if spoiled {
				return lostLock(o)
			}
			return nil
		}
		t.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return fault.Wrap(fault.TimedOut, "cartwheel.Commit", o.String(), ctx.Err())
		}
	}
}

// Check refuses what is written through a handle whose lock was lost.
func (k *Keeper) Check(h mount.Handle, o ids.Object) error {
	t := &k.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, lost := t.lost[h]; lost {
		return lostLock(o)
	}
	return nil
}

// IsReleasing reports whether locks of a file are being given up, for tests.
func (k *Keeper) IsReleasing(o ids.Object) bool {
	k.table.mu.Lock()
	defer k.table.mu.Unlock()
	return len(k.table.going[o]) > 0
}

// Lost returns how many handles are known to have lost a lock, for tests.
func (k *Keeper) Lost() int {
	k.table.mu.Lock()
	defer k.table.mu.Unlock()
	return len(k.table.lost)
}

func lostLock(o ids.Object) error {
	return fault.E(fault.LostLock, "cartwheel.Write", o.String(), "a lock on the file was lost: what it protected may have changed")
}
