package wire

import (
	"sync"
	"sync/atomic"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
)

const opAdmit fault.Op = "wire.admit"

// opServe is the op of a refused request.
const opServe fault.Op = "wire.serve"

// accounts are the users for whom connected peers act. They are safe for use by
// many goroutines.
type accounts struct {
	limits AccountLimits

	mu   sync.Mutex // guards below, and every account's queues
	open map[string]*account
}

// account is what all connections of one user use together.
type account struct {
	name   string
	limits *AccountLimits
	queues map[*framing.Queue]struct{} // one of each connection
	queued atomic.Int64                // bytes that wait to be sent on its connections

	mu      sync.Mutex // guards below
	calls   int
	parked  int // requests that Park took out of calls
	workers int
	held    int
}

// join adds a connection of a peer, by its queue, to an account.
func (a *accounts) join(name, peer string, q *framing.Queue) (*account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.open[name]
	if one == nil {
		one = &account{name: name, limits: &a.limits, queues: map[*framing.Queue]struct{}{}}
		a.open[name] = one
	}
	if len(one.queues) >= a.limits.Connections {
		return nil, fault.Errorf(fault.Overloaded, opAdmit, peer, "%s has %d connections, as many as one user may", name, a.limits.Connections)
	}
	one.queues[q] = struct{}{}
	q.Share(&one.queued)
	return one, nil
}

// leave takes a connection out. It may be called twice. The account counts what
// requests of the connection hold until they are answered.
func (a *accounts) leave(one *account, q *framing.Queue) {
	if one == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(one.queues, q)
	if len(one.queues) == 0 && one.isIdle() {
		delete(a.open, one.name)
	}
}

// isIdle reports whether the account has no requests.
func (a *account) isIdle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls+a.parked == 0
}

// acquire counts a request of n bytes. The error is Overloaded if it is one too
// many. A nil account has no limits.
func (a *account) acquire(n int, worker bool) error {
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

// park takes a request out of the calls, which are limited.
func (a *account) park() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls--
	a.parked++
}

// release ends what acquire began. Parked says that park was called too.
func (a *account) release(n int, worker, parked bool) {
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

// isOverfull reports whether so many answers wait that a connection must be cut.
func (a *account) isOverfull() bool {
	return a != nil && int(a.queued.Load()) >= 2*a.limits.Queued
}

// admission says whether the peer of one connection may use this host, and for
// whom it acts. Once set, admitted stays set.
type admission struct {
	admitted atomic.Bool             // by Options.Admit, or because this host dialled
	account  atomic.Pointer[account] // nil: no limits hold
	mu       sync.Mutex              // held while the peer is being admitted
}
