package locks

import (
	"context"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// holding is a lock that this client believes it has.
type holding struct {
	handle mount.Handle // through which it was taken last
	lock   mount.Lock
	at     lockSession
}

// lockSession is a session with a node: a lock goes with it.
type lockSession struct {
	node   ids.Node
	number uint64
}

// table remembers what is held, to give it up when handles close and to claim
// it from a new active. The node's table is the authority.
type table struct {
	mu   sync.Mutex // guards below
	held map[ids.Object][]holding
	// lost are the handles through which a lock was taken that was lost: their
	// writes fail until they close.
	lost map[mount.Handle]struct{}
	// spoiled are files with bytes that were not committed when a write lock was
	// lost: their next commit fails.
	spoiled map[ids.Object]struct{}
	// doubts are the slices whose locks cannot be trusted until it is known
	// whether another node has them: closed then.
	doubts map[ids.Slice]chan struct{}
	// going are releases under way, which kernels tell of after close returned.
	going map[ids.Object][]chan struct{}
}

func newTable() table {
	return table{
		held:    map[ids.Object][]holding{},
		lost:    map[mount.Handle]struct{}{},
		spoiled: map[ids.Object]struct{}{},
		doubts:  map[ids.Slice]chan struct{}{},
		going:   map[ids.Object][]chan struct{}{},
	}
}

// releasing notes that a handle of an object is being released, until done.
func (t *table) releasing(o ids.Object) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held[o]) == 0 {
		return func() {}
	}
	return t.givingLocked(o)
}

// giving notes that a lock of an object is being given up, until done.
func (t *table) giving(o ids.Object) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.givingLocked(o)
}

// givingLocked notes that locks of an object are being given up; done ends that.
// t.mu is held.
func (t *table) givingLocked(o ids.Object) (done func()) {
	ended := make(chan struct{})
	t.going[o] = append(t.going[o], ended)
	return func() {
		close(ended)
		t.mu.Lock()
		defer t.mu.Unlock()
		list := t.going[o]
		if i := slices.Index(list, ended); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		if t.going[o] = list; len(list) == 0 {
			delete(t.going, o)
		}
	}
}

// settled waits for the releases under way of an object.
func (t *table) settled(ctx context.Context, o ids.Object) error {
	t.mu.Lock()
	going := slices.Clone(t.going[o])
	t.mu.Unlock()
	for _, ended := range going {
		select {
		case <-ended:
		case <-ctx.Done():
			return fault.E(fault.Interrupted, "cartwheel.SetLock", o.String(), "")
		}
	}
	return nil
}

// soon reports whether another owner here holds something of an object, and
// waits for those that are just giving it up, or for a moment.
func (t *table) soon(ctx context.Context, o ids.Object, l *mount.Lock) bool {
	t.mu.Lock()
	going := slices.Clone(t.going[o])
	other := slices.ContainsFunc(t.held[o], func(h holding) bool { return h.lock.Owner != l.Owner && h.lock.Whole == l.Whole })
	t.mu.Unlock()
	for _, ended := range going {
		select {
		case <-ended:
		case <-ctx.Done():
			return false
		}
	}
	if len(going) > 0 || !other {
		return len(going) > 0
	}
	pause := time.NewTimer(closeDelay)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// closeDelay is how late a kernel may tell of a close after it returned; so
// long a lock that is held here and in the way is given another chance.
const closeDelay = 3 * time.Millisecond

// set replaces what an owner holds in the range of l by l.
func (t *table) set(o ids.Object, through mount.Handle, l mount.Lock, at lockSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setLocked(o, through, l, at)
}

// setLocked puts a lock in, in place of what it covers of its owner's.
// t.mu is held.
func (t *table) setLocked(o ids.Object, through mount.Handle, l mount.Lock, at lockSession) {
	var kept []holding
	for _, h := range t.held[o] {
		if h.lock.Owner != l.Owner || h.lock.Whole != l.Whole || h.lock.End < l.Start || h.lock.Start > l.End {
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
		kept = append(kept, holding{through, l, at})
	}
	if len(kept) == 0 {
		delete(t.held, o)
		return
	}
	t.held[o] = kept
}

// which returns what is held of an object and matches.
func (t *table) which(o ids.Object, match func(*holding) bool) []holding {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []holding
	for i := range t.held[o] {
		if match(&t.held[o][i]) {
			out = append(out, t.held[o][i])
		}
	}
	return out
}

// slices returns those in which something is locked.
func (t *table) slices() []ids.Slice {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []ids.Slice
	for o := range t.held {
		if !slices.Contains(out, o.Slice()) {
			out = append(out, o.Slice())
		}
	}
	return out
}
