package cartwheel

import (
	"context"
	"slices"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// A file that is open here when it loses its last name stays at its active until
// it is closed. The active learns that it is open from the removal, or from the
// answer to a revocation, and that it is closed from a call of its own. An open
// that begins while a removal is under way that told of none, or while the file
// is being let go of, would find it gone a moment later. Such an open waits for
// the end of these, and asks the active.

// leaving are the files that may be gone soon, each with what is closed when that
// is decided. The mutex of the nodes guards it.
type leaving map[ids.Object][]chan struct{}

// leave notes that a file may be gone until end is called; the mutex is held. The
// attributes that are known of it must be forgotten before, if it is gone.
func (t *nodes) leave(o ids.Object) (end func()) {
	over := make(chan struct{})
	t.leaving[o] = append(t.leaving[o], over)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		list := t.leaving[o]
		i := slices.Index(list, over)
		if i < 0 {
			return // it was ended before
		}
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(t.leaving, o)
		} else {
			t.leaving[o] = list
		}
		close(over)
	}
}

// remove reports whether an object that is about to lose a name is open here. If
// not, its opens wait until end is called.
func (t *nodes) remove(o ids.Object) (open bool, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.known(o); n != nil && n.opens > 0 {
		return true, func() {}
	}
	return false, t.leave(o)
}

// beginOpen counts an open of a file, once it is decided whether the file goes.
func (t *nodes) beginOpen(ctx context.Context, o ids.Object, flags mount.OpenFlags) (opening, error) {
	for {
		b, decided := t.tryOpen(o, flags)
		if decided == nil {
			return b, nil
		}
		select {
		case <-decided:
		case <-ctx.Done():
			return opening{}, fault.Wrap(fault.KindOf(ctx.Err()), "cartwheel.Open", o.String(), ctx.Err())
		}
	}
}

// tryOpen is countOpen, unless the file may be gone: then it returns what is
// closed when that is decided.
func (t *nodes) tryOpen(o ids.Object, flags mount.OpenFlags) (opening, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if list := t.leaving[o]; len(list) > 0 {
		return opening{}, list[0]
	}
	return t.countLocked(o, flags), nil
}
