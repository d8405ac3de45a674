package lease

import (
	"cmp"
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// Grant gives a session a lease, or renews it, and returns its serial. It
// refuses while a change of the thing is under way, while the session's own
// lease is being revoked, while another session is alone in the directory, after
// the session's end, and when the table is full.
func (t *Table) Grant(id ID, o ids.Object, what pb.Grant_What, now int64) (serial uint64, ok bool) {
	s := t.sessions[id]
	if s == nil || s.client == 0 || now >= s.end || what == pb.Grant_NAMES && t.othersAlone(o, id) {
		return 0, false
	}
	k := key{o, what}
	if l := s.leases[k]; l != nil {
		if obj := t.objects[k]; l.revoking != 0 || obj.changes > 0 {
			return 0, false
		}
		unlink(l)
		t.push(l)
		s.serial++
		return s.serial, true
	}
	obj := t.objects[k]
	if obj != nil && obj.changes > 0 && !plant.On(plant.SessionGrantsInChange) || t.leases >= t.config.MaxLeases || t.sated(s) {
		return 0, false
	}
	t.push(t.hold(s, k))
	s.serial++
	return s.serial, true
}

// hold puts a lease into the table.
func (t *Table) hold(s *session, k key) *lease {
	obj := t.objects[k]
	if obj == nil {
		obj = &object{}
		t.objects[k] = obj
	}
	l := &lease{key: k, session: s}
	obj.leases = append(obj.leases, l)
	s.leases[k] = l
	s.leased(1)
	t.leases++
	return l
}

// push makes a lease the youngest.
func (t *Table) push(l *lease) {
	l.prev, l.next = t.oldest.prev, &t.oldest
	l.prev.next, l.next.prev = l, l
}

func unlink(l *lease) {
	if l.prev != nil {
		l.prev.next, l.next.prev = l.next, l.prev
		l.prev, l.next = nil, nil
	}
}

// free removes a lease and returns the changes that now wait for nothing more.
func (t *Table) free(l *lease) (ready []*Change) {
	unlink(l)
	delete(l.session.leases, l.key)
	l.session.leased(-1)
	t.leases--
	obj := t.objects[l.key]
	if i := slices.Index(obj.leases, l); i >= 0 {
		obj.leases = slices.Delete(obj.leases, i, i+1)
	}
	t.tidy(l.key, obj)
	if asked := l.session.asked[l.revoking]; len(asked) > 0 {
		if asked = slices.DeleteFunc(asked, func(o *lease) bool { return o == l }); len(asked) == 0 {
			delete(l.session.asked, l.revoking)
		} else {
			l.session.asked[l.revoking] = asked
		}
	}
	for _, c := range l.waiters {
		if c.pending--; c.pending == 0 && !c.ended {
			ready = append(ready, c)
		}
	}
	l.waiters = nil
	return ready
}

func (t *Table) tidy(k key, obj *object) {
	if len(obj.leases) == 0 && obj.changes == 0 {
		delete(t.objects, k)
	}
}

// Revocation is what to send a session; a pb.RevokeRequest.
type Revocation struct {
	Session ID
	Client  uint64
	Serial  uint64
	Items   []*pb.RevokeRequest_Item
}

// revocations collects what goes to each session.
type revocations struct {
	list []Revocation
}

// item begins the revocation of a lease.
func (r *revocations) item(l *lease, name []byte, unlinked bool) {
	unlink(l)
	s := l.session
	if s.client == 0 { // nobody to ask: it runs out
		l.revoking = 1
		return
	}
	i := slices.IndexFunc(r.list, func(v Revocation) bool { return v.Session == s.id })
	if i < 0 {
		s.serial++
		r.list = append(r.list, Revocation{Session: s.id, Client: s.client, Serial: s.serial})
		i = len(r.list) - 1
	}
	l.revoking = r.list[i].Serial
	if s.asked == nil {
		s.asked = map[uint64][]*lease{}
	}
	s.asked[l.revoking] = append(s.asked[l.revoking], l)
	r.list[i].Items = append(r.list[i].Items, &pb.RevokeRequest_Item{
		Object: uint64(l.object), What: l.what, Name: name, Unlinked: unlinked,
	})
}

// Unanswered rebuilds the revocations that a session has not answered and may
// not have received, to be sent again when it keeps alive having seen only up
// to a serial.
func (t *Table) Unanswered(id ID, seen uint64) []Revocation {
	s := t.sessions[id]
	if s == nil || s.client == 0 {
		return nil
	}
	var out []Revocation
	for serial, leases := range s.asked {
		if serial <= seen {
			continue
		}
		v := Revocation{Session: id, Client: s.client, Serial: serial}
		for _, l := range leases {
			v.Items = append(v.Items, &pb.RevokeRequest_Item{Object: uint64(l.object), What: l.what, Unlinked: true})
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Revocation) int { return cmp.Compare(a.Serial, b.Serial) })
	return out
}

// Evict begins to take back the oldest leases where the table is over fifteen
// sixteenths full, so that there is room again when they are answered.
func (t *Table) Evict() []Revocation {
	var r revocations
	want := t.leases - t.config.MaxLeases*15/16
	for ; want > 0 && t.oldest.next != &t.oldest; want-- {
		r.item(t.oldest.next, nil, t.oldest.next.what == pb.Grant_FILE)
	}
	return r.list
}

// Answer takes a session's answer to a revocation: its leases named there are
// gone, and held are the objects that the client has open, or is about to open:
// those among them, and those that were known to it by a lease on the names of
// their directory. Ready are the changes that may go on. An answer for a session
// that has ended, or a second one, does nothing.
func (t *Table) Answer(id ID, serial uint64, held []ids.Object) (ready []*Change) {
	s := t.sessions[id]
	if s == nil || s.client == 0 || serial == 0 {
		return nil
	}
	asked := s.asked[serial]
	delete(s.asked, serial)
	for _, l := range asked {
		k := l.key
		if s.leases[k] != l {
			continue // voided meanwhile
		}
		if k.what == pb.Grant_FILE && !slices.Contains(held, k.object) {
			t.forgetOpen(s, k.object)
		}
		for _, c := range l.waiters {
			for _, o := range held {
				if h := (tree.Holder{Object: o, Client: s.client}); c.unlinks(o) && !slices.Contains(c.holders, h) {
					c.holders = append(c.holders, h)
				}
			}
		}
		ready = append(ready, t.free(l)...)
	}
	if len(asked) > 0 {
		for _, o := range held {
			t.rememberOpen(s, o)
		}
	}
	return ready
}

// Opened notes that a session has an object open, so that it is asked when the
// object loses its last name, whether or not it has a lease then. It reports
// false where a change under way takes that name: who has it open was asked
// already, and this session is not held for.
func (t *Table) Opened(id ID, o ids.Object) bool {
	if s := t.sessions[id]; s != nil && s.client != 0 {
		t.rememberOpen(s, o)
	}
	return t.unlinking[o] == 0
}

func (t *Table) rememberOpen(s *session, o ids.Object) {
	if _, known := s.open[o]; known {
		return
	}
	if s.open == nil {
		s.open = map[ids.Object]struct{}{}
	}
	if len(s.open) >= t.config.MaxOpen {
		for any := range s.open {
			t.forgetOpen(s, any)
			break
		}
	}
	s.open[o] = struct{}{}
	t.openers[o] = append(t.openers[o], s)
}

func (t *Table) forgetOpen(s *session, o ids.Object) {
	if _, known := s.open[o]; !known {
		return
	}
	delete(s.open, o)
	list := t.openers[o]
	if i := slices.Index(list, s); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(t.openers, o)
	} else {
		t.openers[o] = list
	}
}
