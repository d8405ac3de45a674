package budget

import "slices"

// waiter is one call that waits until its bytes may leave.
type waiter struct {
	peer  string
	bytes int
	ready chan error // has room for one
}

// fair holds the waiters of one class. Peers take turns, so one that asks for much
// leaves the others their part.
type fair struct {
	turns []string // peers with waiters, the next first
	flows map[string][]*waiter
	bytes int64
}

func (f *fair) isEmpty() bool { return len(f.turns) == 0 }

func (f *fair) push(w *waiter) {
	if f.flows == nil {
		f.flows = map[string][]*waiter{}
	}
	if len(f.flows[w.peer]) == 0 {
		f.turns = append(f.turns, w.peer)
	}
	f.flows[w.peer] = append(f.flows[w.peer], w)
	f.bytes += int64(w.bytes)
}

// pop returns the next waiter; nil: there is none.
func (f *fair) pop() *waiter {
	if f.isEmpty() {
		return nil
	}
	peer := f.turns[0]
	f.turns = f.turns[1:]
	w := f.flows[peer][0]
	f.cut(peer, 0)
	if len(f.flows[peer]) > 0 {
		f.turns = append(f.turns, peer)
	}
	return w
}

// remove takes a waiter out and reports whether it was there.
func (f *fair) remove(w *waiter) bool {
	i := slices.Index(f.flows[w.peer], w)
	if i < 0 {
		return false
	}
	f.cut(w.peer, i)
	if len(f.flows[w.peer]) == 0 {
		f.turns = slices.DeleteFunc(f.turns, func(p string) bool { return p == w.peer })
	}
	return true
}

// cut takes one waiter out of its flow, and forgets a flow that is empty.
func (f *fair) cut(peer string, i int) {
	f.bytes -= int64(f.flows[peer][i].bytes)
	if f.flows[peer] = slices.Delete(f.flows[peer], i, i+1); len(f.flows[peer]) == 0 {
		delete(f.flows, peer)
	}
}
