package lock

import (
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

func (t *Table) enqueue(f *file, l Lock) *Waiter {
	w := &Waiter{Lock: l}
	f.waiting = append(f.waiting, w)
	t.waiting[l.Owner] = append(t.waiting[l.Owner], w)
	t.waiters++
	t.own[l.Client]++
	return w
}

func (t *Table) dequeue(w *Waiter) {
	if w.over {
		return
	}
	w.over = true
	t.waiters--
	if t.own[w.Client]--; t.own[w.Client] == 0 {
		delete(t.own, w.Client)
	}
	f := t.files[space{w.Object, w.Flock}]
	f.waiting = slices.DeleteFunc(f.waiting, func(o *Waiter) bool { return o == w })
	list := slices.DeleteFunc(t.waiting[w.Owner], func(o *Waiter) bool { return o == w })
	if len(list) == 0 {
		delete(t.waiting, w.Owner)
	} else {
		t.waiting[w.Owner] = list
	}
}

// Cancel gives up a request that waits. It reports false where it was granted
// before: then the lock is held.
func (t *Table) Cancel(w *Waiter) bool {
	if w.over {
		return false
	}
	t.dequeue(w)
	t.tidy(&w.Lock)
	return true
}

// wake grants what can be granted now, in order of arrival.
func (t *Table) wake(f *file) (woken []*Waiter) {
	for i := 0; i < len(f.waiting); {
		w := f.waiting[i]
		if f.conflict(&w.Lock) != nil {
			i++
			continue
		}
		held := slices.ContainsFunc(f.held, func(h Lock) bool { return h.Owner == w.Owner })
		t.dequeue(w) // the next one is at i now
		t.take(f, w.Lock)
		woken = append(woken, w)
		if held {
			i = 0 // what the owner had may have become less, and let others in
		}
	}
	return woken
}

// deadlocks reports whether waiting for a lock would close a circle: somebody
// in its way waits, directly or through others, for what its owner holds.
func (t *Table) deadlocks(l Lock) bool {
	seen := map[Owner]bool{}
	var blocked func(l *Lock) bool
	blocked = func(w *Lock) bool {
		f := t.files[space{w.Object, w.Flock}]
		if f == nil {
			return false
		}
		for i := range f.held {
			h := &f.held[i]
			if !h.conflicts(w) {
				continue
			}
			if h.Owner == l.Owner {
				return true
			}
			if seen[h.Owner] {
				continue
			}
			seen[h.Owner] = true
			for _, next := range t.waiting[h.Owner] {
				if blocked(&next.Lock) {
					return true
				}
			}
		}
		return false
	}
	return blocked(&l)
}

// ReleaseOwner drops all locks of an owner on one object, as a close does, and
// gives up its requests there.
func (t *Table) ReleaseOwner(o ids.Object, owner Owner) (woken []*Waiter) {
	for _, flock := range [...]bool{false, true} {
		granted, _ := t.release(space{o, flock}, func(x Owner) bool { return x == owner }, owner.Client)
		woken = append(woken, granted...)
	}
	return woken
}

// Ended is what came of the end of a session.
type Ended struct {
	// Lost are the objects that the client held locks on (Lost).
	Lost []ids.Object
	// Woken are others' requests that were granted, Expired the client's own
	// that waited: it must hear that they are forgotten.
	Woken, Expired []*Waiter
}

// Begin notes that a client's requests come under a session. What it had under
// an earlier one is gone: that session has ended for the client, even if its
// time at the node is not over. A request of a session before the one that is
// known comes late and gets Expired.
func (t *Table) Begin(client, session uint64) (Ended, error) {
	switch known, ok := t.sessions[client]; {
	case !ok:
		t.sessions[client] = session
	case known > session:
		return Ended{}, fault.E(fault.Expired, "lock.Begin", "", "the client has opened another session since")
	case known < session:
		out := t.End(client, known)
		t.sessions[client] = session
		return out, nil
	}
	return Ended{}, nil
}

// End drops everything that a client has under a session.
func (t *Table) End(client, session uint64) (out Ended) {
	if known, ok := t.sessions[client]; !ok || known != session {
		return out
	}
	delete(t.sessions, client)
	for s := range t.clients[client] {
		if f := t.files[s]; f != nil && slices.ContainsFunc(f.held, func(h Lock) bool { return h.Client == client }) {
			out.Lost = append(out.Lost, s.object)
			t.lose(client, session, s.object)
		}
		woken, dropped := t.release(s, func(o Owner) bool { return o.Client == client }, client)
		out.Woken, out.Expired = append(out.Woken, woken...), append(out.Expired, dropped...)
	}
	return out
}

// ReleaseSlice drops everything of a slice that another node acts for now; its
// holders claim their locks there. Waiters are returned to be refused.
func (t *Table) ReleaseSlice(slice ids.Slice) (refused []*Waiter) {
	refused = t.RefuseWaiting(slice)
	for s, f := range t.files {
		if s.object.Slice() != slice {
			continue
		}
		held := f.held
		t.replace(f, nil)
		for i := range held {
			t.tidy(&held[i])
		}
	}
	delete(t.claims, slice)
	return refused
}

// RefuseWaiting returns what waits for locks in a slice, which is refused: the
// node does not act for the slice now. What is held stays.
func (t *Table) RefuseWaiting(slice ids.Slice) (refused []*Waiter) {
	for s, f := range t.files {
		if s.object.Slice() != slice {
			continue
		}
		first := len(refused)
		for len(f.waiting) > 0 {
			w := f.waiting[0]
			t.dequeue(w)
			refused = append(refused, w)
		}
		for _, w := range refused[first:] {
			t.tidy(&w.Lock)
		}
	}
	return refused
}

// release drops the locks and requests of some owners of a client.
func (t *Table) release(s space, gone func(Owner) bool, client uint64) (woken, dropped []*Waiter) {
	f := t.files[s]
	if f == nil {
		return nil, nil
	}
	for _, w := range slices.Clone(f.waiting) {
		if gone(w.Owner) {
			t.dequeue(w)
			dropped = append(dropped, w)
		}
	}
	t.replace(f, slices.DeleteFunc(slices.Clone(f.held), func(h Lock) bool { return gone(h.Owner) }))
	woken = t.wake(f)
	t.tidy(&Lock{Object: s.object, Flock: s.flock, Owner: Owner{Client: client}})
	return woken, dropped
}

// AwaitClaims refuses new locks in a slice until a time: after a takeover its
// holders have one lease to claim theirs.
func (t *Table) AwaitClaims(slice ids.Slice, until int64) { t.claims[slice] = until }

// Claim takes locks again that were held before a takeover. What cannot be had
// any more, because the claims are over and another client was faster, is lost.
func (t *Table) Claim(locks []Lock) (lost []Lock) {
	for _, l := range locks {
		if l.Type == Unlock || check(&l) != nil {
			continue
		}
		if out := t.set(l, false); !out.Granted {
			lost = append(lost, l)
		}
	}
	return lost
}

// lose remembers that a client lost a lock.
func (t *Table) lose(client, session uint64, o ids.Object) {
	of := t.lost[client]
	if of == nil {
		of = map[ids.Object]uint64{}
		t.lost[client] = of
		t.losers = append(t.losers, client)
	}
	if _, known := of[o]; !known {
		t.nlost++
	}
	of[o] = session
	for t.nlost > t.config.MaxLost && len(t.losers) > 1 {
		t.ForgetLost(t.losers[0])
	}
}

// Lost reports whether a client lost a lock on an object when a session ended,
// or later: what it sends there under that session it wrote before it knew.
func (t *Table) Lost(client, session uint64, o ids.Object) bool {
	under, lost := t.lost[client][o]
	return lost && session <= under
}

// ForgetLost forgets what a client lost.
func (t *Table) ForgetLost(client uint64) {
	t.nlost -= len(t.lost[client])
	delete(t.lost, client)
	t.losers = slices.DeleteFunc(t.losers, func(c uint64) bool { return c == client })
}
