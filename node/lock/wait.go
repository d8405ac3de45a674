package lock

import (
	"slices"

	geoconfig "cartwheel.dev/geo-config"
)

func (t *Table) enqueue(f *file, l Lock) *Waiter {
	w := &Waiter{Lock: l}
	f.waiting = append(f.waiting, w)
	t.waiting[l.Owner] = append(t.waiting[l.Owner], w)
	t.waiters++
	return w
}

func (t *Table) dequeue(w *Waiter) {
	if w.over {
		return
	}
	w.over = true
	t.waiters--
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
	for again := true; again; {
		again = false
		for _, w := range f.waiting {
			if f.conflict(&w.Lock) != nil {
				continue
			}
			t.dequeue(w)
			t.take(f, w.Lock)
			woken = append(woken, w)
			again = true // the queue has changed, and a downgrade may let more in
			break
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
func (t *Table) ReleaseOwner(o geoconfig.ObjectID, owner Owner) (woken []*Waiter) {
	for _, flock := range [...]bool{false, true} {
		woken = append(woken, t.release(space{o, flock}, func(x Owner) bool { return x == owner }, owner.Client)...)
	}
	return woken
}

// ReleaseClient drops everything of a client whose session has ended. Lost
// are the objects that it held locks on; they are remembered (Lost).
func (t *Table) ReleaseClient(client uint64) (lost []geoconfig.ObjectID, woken []*Waiter) {
	for s := range t.clients[client] {
		if f := t.files[s]; f != nil && slices.ContainsFunc(f.held, func(h Lock) bool { return h.Client == client }) {
			lost = append(lost, s.object)
			t.lose(client, s.object)
		}
		woken = append(woken, t.release(s, func(o Owner) bool { return o.Client == client }, client)...)
	}
	return lost, woken
}

// ReleaseSlice drops everything of a slice that another node acts for now; its
// holders claim their locks there. Waiters are returned to be refused.
func (t *Table) ReleaseSlice(slice geoconfig.SliceID) (refused []*Waiter) {
	for s, f := range t.files {
		if s.object.Slice() != slice {
			continue
		}
		for len(f.waiting) > 0 {
			w := f.waiting[0]
			t.dequeue(w)
			refused = append(refused, w)
		}
		held := f.held
		t.replace(f, nil)
		for i := range held {
			t.tidy(&held[i])
		}
		for _, w := range refused {
			t.tidy(&w.Lock)
		}
	}
	delete(t.claims, slice)
	return refused
}

func (t *Table) release(s space, gone func(Owner) bool, client uint64) (woken []*Waiter) {
	f := t.files[s]
	if f == nil {
		return nil
	}
	for _, w := range slices.Clone(f.waiting) {
		if gone(w.Owner) {
			t.dequeue(w)
		}
	}
	t.replace(f, slices.DeleteFunc(slices.Clone(f.held), func(h Lock) bool { return gone(h.Owner) }))
	woken = t.wake(f)
	t.tidy(&Lock{Object: s.object, Flock: s.flock, Owner: Owner{Client: client}})
	return woken
}

// AwaitClaims refuses new locks in a slice until a time: after a takeover its
// holders have one lease to claim theirs.
func (t *Table) AwaitClaims(slice geoconfig.SliceID, until int64) { t.claims[slice] = until }

// Claim takes locks again that were held before a takeover. What cannot be had
// any more, because the claims are over and somebody else was faster, is lost.
func (t *Table) Claim(locks []Lock) (lost []Lock) {
	for _, l := range locks {
		if l.Type == Unlock || check(&l) != nil {
			continue
		}
		if out := t.set(l, false); !out.Granted {
			lost = append(lost, l)
			t.lose(l.Client, l.Object)
		}
	}
	return lost
}

// lose remembers that a client lost a lock.
func (t *Table) lose(client uint64, o geoconfig.ObjectID) {
	of := t.lost[client]
	if of == nil {
		of = map[geoconfig.ObjectID]struct{}{}
		t.lost[client] = of
		t.losers = append(t.losers, client)
	}
	if _, known := of[o]; known {
		return
	}
	of[o] = struct{}{}
	t.nlost++
	for t.nlost > t.config.MaxLost && len(t.losers) > 1 {
		t.ForgetLost(t.losers[0])
	}
}

// Lost reports, once, that a client lost a lock on an object: its next write
// there fails.
func (t *Table) Lost(client uint64, o geoconfig.ObjectID) bool {
	of := t.lost[client]
	if _, lost := of[o]; !lost {
		return false
	}
	delete(of, o)
	t.nlost--
	if len(of) == 0 {
		t.ForgetLost(client)
	}
	return true
}

// ForgetLost forgets what a client lost.
func (t *Table) ForgetLost(client uint64) {
	t.nlost -= len(t.lost[client])
	delete(t.lost, client)
	t.losers = slices.DeleteFunc(t.losers, func(c uint64) bool { return c == client })
}
