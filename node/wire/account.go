package wire

import (
	"sync"
	"sync/atomic"

	"cartwheel.dev/geo-config/fault"
)

// accounts are those for whom connected peers act.
type accounts struct {
	limits AccountLimits

	mu   sync.Mutex // guards below, and every account's links
	open map[string]*account
}

// account is what all connections of one account use together.
type account struct {
	name   string
	limits *AccountLimits
	links  map[*link]struct{}
	queued atomic.Int64 // bytes that wait to be sent on its connections

	mu      sync.Mutex // guards below
	calls   int
	parked  int // requests that Park took out of calls
	workers int
	held    int
}

// join adds a connection to an account.
func (a *accounts) join(name string, l *link) (*account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.open[name]
	if one == nil {
		one = &account{name: name, limits: &a.limits, links: map[*link]struct{}{}}
		a.open[name] = one
	}
	if len(one.links) >= a.limits.Connections {
		return nil, fault.Errorf(fault.Overloaded, opAdmit, l.peer.id, "%s has %d connections, as many as one user may", name, a.limits.Connections)
	}
	one.links[l] = struct{}{}
	l.queue.Share(&one.queued)
	return one, nil
}

// leave takes a connection out. What its requests hold stays counted until
// they are answered.
func (a *accounts) leave(one *account, l *link) {
	if one == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(one.links, l)
	if len(one.links) == 0 && one.idle() {
		delete(a.open, one.name)
	}
}

// find returns an account that has connections or requests, or nil.
func (a *accounts) find(name string) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[name]
}

func (a *account) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls+a.parked == 0
}

// take counts a request of so many bytes; what is one too many is answered
// Overloaded. A nil account has no limits.
func (a *account) take(n int, worker bool) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	queued := int(a.queued.Load())
	switch l := a.limits; {
	case a.calls >= l.Calls:
		return a.full(a.calls, "requests under way", l.Calls)
	case worker && a.workers >= l.Workers:
		return a.full(a.workers, "requests that wait or work", l.Workers)
	case a.held > 0 && a.held+n > l.Held:
		return a.full(a.held, "bytes of requests under way", l.Held)
	case queued >= l.Queued:
		return a.full(queued, "bytes of answers that its clients do not take", l.Queued)
	}
	a.calls++
	a.held += n
	if worker {
		a.workers++
	}
	return nil
}

// full is the refusal of one more than a limit allows.
func (a *account) full(has int, of string, limit int) error {
	return fault.Errorf(fault.Overloaded, opServe, a.name, "the user has %d %s here, and %d may be: ask again when some have ended", has, of, limit)
}

// park takes a request out of the number that is limited.
func (a *account) park() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls--
	a.parked++
}

// give ends what take began; parked: and park went on with.
func (a *account) give(n int, worker, parked bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if parked {
		a.parked--
	} else {
		a.calls--
	}
	a.held -= n
	if worker {
		a.workers--
	}
}

// overfull reports whether the account's answers that wait are too many to wait
// for.
func (a *account) overfull() bool {
	return a != nil && int(a.queued.Load()) >= 2*a.limits.Queued
}
