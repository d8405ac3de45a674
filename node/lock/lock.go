// Package lock keeps advisory locks: POSIX byte ranges (fcntl, and locks of
// open file descriptions, which differ only in who the owner is) and whole-file
// locks (flock), with queues of those who wait and detection of deadlocks within
// one node. It is pure bookkeeping: the server passes requests in and wakes the
// waiters that a Table names. Whether a client's session stands is not its
// business. A Table is not safe for concurrent use.
package lock

import (
	"cmp"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Type is what a lock allows others, numbered as fcntl does.
type Type uint8

// The types of locks.
const (
	Read   Type = 0
	Write  Type = 1
	Unlock Type = 2
)

// EOF is the end of a lock that reaches to the end of the file, however it grows.
const EOF = 1<<64 - 1

// Owner is who holds a lock: a process or open file of a client. Locks of one
// owner never conflict.
type Owner struct {
	Client, Owner uint64
}

// Lock is one lock or request for one.
type Lock struct {
	Object ids.Object
	Owner
	Flock      bool   // a space of its own: fcntl's locks and flock's do not meet
	Start, End uint64 // inclusive
	Type       Type
	PID        uint32
}

func (l *Lock) overlaps(o *Lock) bool { return l.Start <= o.End && o.Start <= l.End }

func (l *Lock) conflicts(o *Lock) bool {
	return l.Owner != o.Owner && l.overlaps(o) && (l.Type == Write || o.Type == Write)
}

// Config limits a table.
type Config struct {
	MaxLocks   int // of all objects; beyond it requests answer NoLocks
	MaxWaiting int // requests that wait; beyond it they answer NoLocks
	// MaxOwnWaiting is how many of them may be one client's; beyond it they
	// answer NoLocks. 0: all.
	MaxOwnWaiting int
	MaxLost       int // lost locks remembered; beyond it the oldest client's go
}

// DefaultConfig returns the limits of a node.
func DefaultConfig() Config {
	return Config{MaxLocks: 100_000, MaxWaiting: 65_536, MaxOwnWaiting: 16_384, MaxLost: 100_000}
}

// space is one object's fcntl or flock locks.
type space struct {
	object ids.Object
	flock  bool
}

// file is the state of one space: held is sorted by start.
type file struct {
	held    []Lock
	waiting []*Waiter // in order of arrival
}

// Waiter is a request that waits.
type Waiter struct {
	Lock
	// Tag is the server's, to find the request again.
	Tag  any
	over bool
}

// Table holds a node's locks.
type Table struct {
	config  Config
	files   map[space]*file
	locks   int
	waiting map[Owner][]*Waiter
	waiters int
	own     map[uint64]int                // waiters of a client
	clients map[uint64]map[space]struct{} // where a client may hold or await locks
	// sessions has the session under which a client has its locks.
	sessions map[uint64]uint64
	// lost has the session under which a client last lost a lock on an object.
	lost   map[uint64]map[ids.Object]uint64
	losers []uint64 // clients of lost, the oldest first
	nlost  int
	claims map[ids.Slice]int64
}

// New returns an empty table.
func New(config Config) *Table {
	return &Table{
		config: config, files: map[space]*file{}, waiting: map[Owner][]*Waiter{},
		own: map[uint64]int{}, clients: map[uint64]map[space]struct{}{}, sessions: map[uint64]uint64{},
		lost: map[uint64]map[ids.Object]uint64{}, claims: map[ids.Slice]int64{},
	}
}

// Len returns how many locks are held and how many requests wait.
func (t *Table) Len() (held, waiting int) { return t.locks, t.waiters }

// Outcome is what became of a request: granted, or waiting, or in conflict, or
// refused with an error.
type Outcome struct {
	Granted  bool
	Conflict *Lock   // the first lock in the way
	Waiter   *Waiter // where the request waits; Cancel gives it up
	// Woken are waiters that were granted because this request let something go.
	Woken []*Waiter
	Err   error // Deadlock, NoLocks, Invalid; Again while claims are awaited
}

// Set takes, changes or (Type Unlock) drops a lock; with wait it queues behind
// what is in the way. Now is in nanoseconds of the node's clock.
func (t *Table) Set(l Lock, wait bool, now int64) Outcome {
	const op fault.Op = "lock.Set"
	if err := check(&l); err != nil {
		return Outcome{Err: err}
	}
	if l.Type != Unlock {
		if until, ok := t.claims[l.Object.Slice()]; ok {
			if now < until {
				return Outcome{Err: fault.E(fault.Again, op, l.Object.String(), "holders from before the takeover may still claim their locks")}
			}
			delete(t.claims, l.Object.Slice())
		}
	}
	return t.set(l, wait)
}

func check(l *Lock) error {
	const op fault.Op = "lock.check"
	if l.Flock {
		l.Start, l.End = 0, EOF
	}
	if l.Start > l.End || l.Type > Unlock || l.Object == 0 {
		return fault.E(fault.Invalid, op, l.Object.String(), "no such range or type of lock")
	}
	return nil
}

func (t *Table) set(l Lock, wait bool) (out Outcome) {
	const op fault.Op = "lock.set"
	f := t.file(&l)
	if l.Flock && l.Type != Unlock && f.has(&l) {
		return Outcome{Granted: true} // the same again
	}
	if l.Flock || l.Type == Unlock {
		// a flock lets go of the old lock before it waits for the new one
		t.carve(f, l)
		out.Woken = t.wake(f)
	}
	defer t.tidy(&l)
	if l.Type == Unlock {
		out.Granted = true
		return out
	}
	if c := f.conflict(&l); c != nil {
		held := *c
		out.Conflict = &held
		if !wait {
			return out
		}
		if t.waiters >= t.config.MaxWaiting || t.config.MaxOwnWaiting > 0 && t.own[l.Client] >= t.config.MaxOwnWaiting {
			out.Err = fault.E(fault.NoLocks, op, l.Object.String(), "too many requests wait for locks")
			return out
		}
		if t.deadlocks(l) {
			out.Err = fault.E(fault.Deadlock, op, l.Object.String(), "waiting would never end")
			return out
		}
		out.Waiter = t.enqueue(f, l)
		return out
	}
	if t.locks >= t.config.MaxLocks {
		out.Err = fault.E(fault.NoLocks, op, l.Object.String(), "the table of locks is full")
		return out
	}
	t.take(f, l)
	out.Granted = true
	if !l.Flock { // a write lock turned into a read lock lets readers in
		out.Woken = append(out.Woken, t.wake(f)...)
	}
	return out
}

// Test returns a lock that is in the way of a request, or nil.
func (t *Table) Test(l Lock) (*Lock, error) {
	if err := check(&l); err != nil {
		return nil, err
	}
	f := t.files[space{l.Object, l.Flock}]
	if f == nil || l.Type == Unlock {
		return nil, nil
	}
	if c := f.conflict(&l); c != nil {
		held := *c
		return &held, nil
	}
	return nil, nil
}

func (t *Table) file(l *Lock) *file {
	s := space{l.Object, l.Flock}
	f := t.files[s]
	if f == nil {
		f = &file{}
		t.files[s] = f
	}
	of := t.clients[l.Client]
	if of == nil {
		of = map[space]struct{}{}
		t.clients[l.Client] = of
	}
	of[s] = struct{}{}
	return f
}

// tidy forgets a space with nothing in it.
func (t *Table) tidy(l *Lock) {
	s := space{l.Object, l.Flock}
	f := t.files[s]
	if f == nil {
		return
	}
	mine := func(o Owner) bool { return o.Client == l.Client }
	if !slices.ContainsFunc(f.held, func(h Lock) bool { return mine(h.Owner) }) &&
		!slices.ContainsFunc(f.waiting, func(w *Waiter) bool { return mine(w.Owner) }) {
		if of := t.clients[l.Client]; of != nil {
			if delete(of, s); len(of) == 0 {
				delete(t.clients, l.Client)
			}
		}
	}
	if len(f.held) == 0 && len(f.waiting) == 0 {
		delete(t.files, s)
	}
}

func (f *file) has(l *Lock) bool {
	return slices.ContainsFunc(f.held, func(h Lock) bool { return h.Owner == l.Owner && h.Type == l.Type })
}

// conflict returns the first lock in the way.
func (f *file) conflict(l *Lock) *Lock {
	for i := range f.held {
		if f.held[i].Start > l.End {
			break
		}
		if f.held[i].conflicts(l) {
			return &f.held[i]
		}
	}
	return nil
}

// carve takes the range away from what the owner holds.
func (t *Table) carve(f *file, l Lock) {
	out := make([]Lock, 0, len(f.held)+1)
	for _, h := range f.held {
		if h.Owner != l.Owner || !h.overlaps(&l) {
			out = append(out, h)
			continue
		}
		if h.Start < l.Start {
			left := h
			left.End = l.Start - 1
			out = append(out, left)
		}
		if h.End > l.End {
			right := h
			right.Start = l.End + 1
			out = append(out, right)
		}
	}
	t.replace(f, out)
}

func (t *Table) replace(f *file, held []Lock) {
	slices.SortStableFunc(held, func(a, b Lock) int { return cmp.Compare(a.Start, b.Start) })
	t.locks += len(held) - len(f.held)
	f.held = held
}

// take gives the owner the range, and joins it to neighbours of the same type.
func (t *Table) take(f *file, l Lock) {
	t.carve(f, l)
	out := make([]Lock, 0, len(f.held)+1)
	for _, h := range f.held {
		if h.Owner == l.Owner && h.Type == l.Type && touches(&h, &l) {
			l.Start, l.End = min(l.Start, h.Start), max(l.End, h.End)
			continue
		}
		out = append(out, h)
	}
	t.replace(f, append(out, l))
}

func touches(a, b *Lock) bool {
	return a.overlaps(b) || (a.End != EOF && a.End+1 == b.Start) || (b.End != EOF && b.End+1 == a.Start)
}
