package cartwheel

import (
	"slices"
	"sync"

	"cartwheel.dev/geo-config/ids"
)

// A file that is open here when it loses its last name stays at its active until
// it is closed. The active learns that it is open from the removal, or from the
// answer to a revocation, and that it is closed from a call of its own. An open
// that begins while a removal is under way that told of none, or while the file
// is being let go of, would find it gone a moment later. Such an open waits for
// the end of these, and asks the active.

// leaving are the files that may be gone soon, each with what is closed when that
// is decided.
type leaving struct {
	mu *sync.Mutex // of the nodes; guards by
	by map[ids.Object][]chan struct{}
}

// begin notes that a file may be gone until end is called; the mutex is held. If
// it is gone, what is known of its attributes must be forgotten before the end.
func (l *leaving) begin(o ids.Object) (end func()) {
	over := make(chan struct{})
	l.by[o] = append(l.by[o], over)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		list := l.by[o]
		i := slices.Index(list, over)
		if i < 0 {
			return // it was ended before
		}
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(l.by, o)
		} else {
			l.by[o] = list
		}
		close(over)
	}
}

// undecided returns what is closed at the end of one reason for which a file may
// be gone, nil where there is none; the mutex is held.
func (l *leaving) undecided(o ids.Object) <-chan struct{} {
	if list := l.by[o]; len(list) > 0 {
		return list[0]
	}
	return nil
}
