package inodes

import (
	"slices"

	"cartwheel.dev/geo-config/ids"
)

// A file that is open here when it loses its last name stays at its active until
// it is closed. The active learns that it is open from the removal, or from the
// answer to a revocation, and that it is closed from a call of its own. An open
// that begins while a removal is under way that told of none, or while the file
// is being let go of, would find it gone a moment later. Such an open waits for
// the end of these, and asks the active.

// Leaving is a file that may be gone soon. Its opens wait until End is called,
// which may be done more than once.
type Leaving struct {
	Object ids.Object
	End    func()
}

// leaveLocked notes that a file may be gone until end is called; the mutex is held. The
// attributes that are known of it must be forgotten before, if it is gone.
func (t *Table) leaveLocked(o ids.Object) (end func()) {
	over := make(chan struct{})
	t.leaving[o] = append(t.leaving[o], over)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if takeOut(t.leaving, o, over) { // else it was ended before
			close(over)
		}
	}
}

// takeOut takes a value out of an object's list, and reports whether it was there.
func takeOut[V comparable](lists map[ids.Object][]V, o ids.Object, v V) bool {
	list := lists[o]
	i := slices.Index(list, v)
	if i < 0 {
		return false
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(lists, o)
	} else {
		lists[o] = list
	}
	return true
}

// BeginRemoval reports whether an object that is about to lose a name is open here.
// If not, its opens wait until end is called.
func (t *Table) BeginRemoval(o ids.Object) (open bool, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.knownLocked(o); n != nil && n.opens > 0 {
		return true, func() {}
	}
	return false, t.leaveLocked(o)
}

// Unnamed notes that the active holds an object that lost its last name, because
// it was told that the object may be open here. letGo is true where that is not
// so, and the active is to be told. The file's opens wait until l.End is called.
func (t *Table) Unnamed(o ids.Object) (l Leaving, letGo bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.knownLocked(o); n != nil && n.opens > 0 {
		n.held = true
		return l, false
	}
	return Leaving{o, t.leaveLocked(o)}, true
}
