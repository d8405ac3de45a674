package lease

import (
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// Change is an operation from when its touches are known until it is committed
// and readable (or given up): so long nobody gets a lease on what it touches.
type Change struct {
	keys     set[key]
	unlinked set[ids.Object]
	holders  []tree.Holder
	pending  int
	ended    bool
	// Tag is the server's, to find its operation again.
	Tag any
}

// Ready reports whether no lease of another session is left.
func (c *Change) Ready() bool { return c.pending == 0 }

// Holders are the clients that said they have open what the change unlinks.
func (c *Change) Holders() []tree.Holder { return c.holders }

func (c *Change) unlinks(o ids.Object) bool { return c.unlinked.has(o) }

// set is a few things in their order, mostly; a batch of operations may touch
// thousands.
type set[T comparable] struct {
	list  []T
	index map[T]struct{} // once there are many
}

func (s *set[T]) has(x T) bool {
	if s.index != nil {
		_, has := s.index[x]
		return has
	}
	return slices.Contains(s.list, x)
}

// add puts a thing in, and reports whether it is new.
func (s *set[T]) add(x T) bool {
	if s.has(x) {
		return false
	}
	if s.list = append(s.list, x); s.index != nil {
		s.index[x] = struct{}{}
	} else if len(s.list) == 16 {
		s.index = make(map[T]struct{}, 64)
		for _, y := range s.list {
			s.index[y] = struct{}{}
		}
	}
	return true
}

// Begin starts a change by a session (except, 0 for none; it keeps its leases)
// or adds touches to one begun (the evaluation after a wait may name others).
// Revocations are to be sent; where the change is not Ready, it becomes so
// through Answer, Expire, Close or KeepAlive.
func (t *Table) Begin(c *Change, touches []tree.Touch, except ID) (*Change, []Revocation) {
	if c == nil {
		c = &Change{keys: set[key]{list: make([]key, 0, len(touches))}}
	}
	var r revocations
	for i := range touches {
		touch := &touches[i]
		k := key{touch.Object, touch.What}
		if touch.Unlinked && c.unlinked.add(k.object) {
			t.unlinking[k.object]++
			t.askOpeners(k, except)
		}
		obj := t.objects[k]
		if c.keys.add(k) {
			if obj == nil {
				obj = &object{}
				t.objects[k] = obj
			}
			if obj.changes++; obj.changes == 1 {
				obj.by = except
			} else if obj.by != except {
				obj.by = 0
			}
		}
		for _, l := range obj.leases {
			if l.session.id == except || slices.Contains(l.waiters, c) {
				continue
			}
			if l.revoking == 0 {
				r.item(l, touch.Name, touch.Unlinked || k.what == pb.Grant_FILE)
			}
			l.waiters = append(l.waiters, c)
			c.pending++
		}
	}
	return c, r.list
}

// askOpeners gives every session that once said it has the object open a lease
// to be revoked, so that it is asked whether it still has.
func (t *Table) askOpeners(k key, except ID) {
	for _, s := range t.openers[k.object] {
		if s.id != except && s.leases[k] == nil {
			t.hold(s, k)
		}
	}
}

// End ends a change: leases are granted again. It may be called twice.
func (t *Table) End(c *Change) {
	if c == nil || c.ended {
		return
	}
	c.ended = true
	for _, k := range c.keys.list {
		if obj := t.objects[k]; obj != nil {
			obj.changes--
			t.tidy(k, obj)
		}
	}
	for _, o := range c.unlinked.list {
		if t.unlinking[o]--; t.unlinking[o] == 0 {
			delete(t.unlinking, o)
		}
	}
	c.keys, c.unlinked.list = set[key]{}, nil
}

// Changing reports whether a change of the thing is under way, so that a
// reader knows before it reads that it will get no lease.
func (t *Table) Changing(o ids.Object, what pb.Grant_What) bool {
	obj := t.objects[key{o, what}]
	return obj != nil && obj.changes > 0
}

// Handed is a lease that outlives its active: nobody may change the object
// before so many nanoseconds are over.
type Handed struct {
	Object ids.Object
	What   pb.Grant_What
	Left   int64
}

// Handover lists a slice's leases with their time left, for the next active of
// a planned hand-over. They stay in this table.
func (t *Table) Handover(slice ids.Slice, now int64) []Handed {
	var out []Handed
	for _, s := range t.sessions {
		for k := range s.leases {
			if k.object.Slice() == slice && s.end > now {
				out = append(out, Handed{Object: k.object, What: k.what, Left: s.end - now})
			}
		}
	}
	return out
}

// RevokeSlice begins to take back all leases of a slice that is about to be
// handed over.
func (t *Table) RevokeSlice(slice ids.Slice) []Revocation {
	var r revocations
	for _, s := range t.sessions {
		for k, l := range s.leases {
			if k.object.Slice() == slice && l.revoking == 0 {
				r.item(l, nil, k.what == pb.Grant_FILE)
			}
		}
	}
	for i := range r.list {
		for _, item := range r.list[i].Items {
			item.Leaving = true
		}
	}
	return r.list
}

// TakeOver keeps the leases that a former active handed over until they run out.
func (t *Table) TakeOver(handed []Handed, now int64) {
	byEnd := map[int64]*session{}
	for _, h := range handed {
		if h.Left <= 0 {
			continue
		}
		t.outlive(byEnd, key{h.Object, h.What}, now+h.Left)
	}
}

// outlive holds a lease for nobody until it runs out.
func (t *Table) outlive(byEnd map[int64]*session, k key, end int64) *lease {
	s := byEnd[end]
	if s == nil {
		s = t.add(0, end)
		byEnd[end] = s
	}
	if l := s.leases[k]; l != nil {
		return l
	}
	l := t.hold(s, k)
	l.revoking = 1 // nobody can be asked
	return l
}

// Void ends a slice's leases as clients do when they learn of an exception or
// a new active. They may not have learned it yet: until their sessions would
// have ended, the leases still stand in the way of changes, unrenewed.
func (t *Table) Void(slice ids.Slice, now int64) (ready []*Change) {
	byEnd := map[int64]*session{}
	for _, s := range t.sessions {
		if s.client == 0 {
			continue
		}
		for k, l := range s.leases {
			if k.object.Slice() != slice {
				continue
			}
			if s.end > now {
				stay := t.outlive(byEnd, k, s.end)
				for _, c := range l.waiters {
					c.pending++
					stay.waiters = append(stay.waiters, c)
				}
			}
			ready = append(ready, t.free(l)...)
		}
	}
	return ready
}
