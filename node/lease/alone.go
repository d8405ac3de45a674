package lease

import (
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// A lease of kind ALONE on a directory says that no other session reads or
// changes its names before it was revoked, so that its holder may make names
// that the node hears of later. It covers nothing that can be cached; what is
// known of the names is under a NAMES lease as ever.

// maxShunned bounds the directories that are remembered as shared; beyond it
// the old ones are forgotten first, and then all.
const maxShunned = 1 << 14

// GrantAlone gives a session a lease of kind ALONE on a directory, or renews
// it. It refuses where Grant would, while another session has a lease on the
// directory's names or an operation of its on them under way, and for a while
// after one was taken back for the sake of another session.
func (t *Table) GrantAlone(id ID, o ids.Object, now int64) (serial uint64, ok bool) {
	s := t.sessions[id]
	if s == nil || s.client == 0 || now >= s.end || t.shunned[o] > now {
		return 0, false
	}
	for _, what := range [...]pb.Grant_What{pb.Grant_NAMES, pb.Grant_ALONE} {
		obj := t.objects[key{o, what}]
		if obj == nil {
			continue
		}
		if obj.changes > 0 && obj.by != id {
			return 0, false
		}
		for _, l := range obj.leases {
			if l.session != s || l.revoking != 0 {
				return 0, false
			}
		}
	}
	k := key{o, pb.Grant_ALONE}
	l := s.leases[k]
	switch {
	case l != nil:
		unlink(l)
	case t.leases >= t.config.MaxLeases:
		return 0, false
	default:
		l = t.hold(s, k)
	}
	t.push(l)
	s.serial++
	return s.serial, true
}

// Born gives a session the leases NAMES and ALONE on a directory that an
// operation of its is about to make, before anybody else can know of it. It
// returns their serials, or false where the session has ended, where there is no
// room, or where anybody has to do with an object of that number. Where the
// directory is not made after all, Unborn ends them.
func (t *Table) Born(id ID, o ids.Object, now int64) (names, alone uint64, ok bool) {
	s := t.sessions[id]
	if s == nil || s.client == 0 || now >= s.end || t.leases+2 > t.config.MaxLeases || t.sated(s) {
		return 0, 0, false
	}
	for _, what := range [...]pb.Grant_What{pb.Grant_NAMES, pb.Grant_ALONE} {
		if obj := t.objects[key{o, what}]; obj != nil && (len(obj.leases) > 0 || obj.changes > 0 && obj.by != id) {
			return 0, 0, false
		}
	}
	t.push(t.hold(s, key{o, pb.Grant_NAMES}))
	t.push(t.hold(s, key{o, pb.Grant_ALONE}))
	s.serial += 2
	return s.serial - 1, s.serial, true
}

// Unborn ends what Born gave, if it is still there, and returns the changes that
// now wait for nothing more.
func (t *Table) Unborn(id ID, o ids.Object) (ready []*Change) {
	s := t.sessions[id]
	if s == nil {
		return nil
	}
	for _, what := range [...]pb.Grant_What{pb.Grant_NAMES, pb.Grant_ALONE} {
		if l := s.leases[key{o, what}]; l != nil {
			ready = append(ready, t.free(l)...)
		}
	}
	return ready
}

// Alone reports whether a client's session has a lease of kind ALONE on a
// directory.
func (t *Table) Alone(id ID, client uint64, o ids.Object, now int64) bool {
	return t.Valid(id, client, now) && t.sessions[id].leases[key{o, pb.Grant_ALONE}] != nil
}

// Share begins what a session (0: nobody's) reads of directories' names, or
// does to them: from then until End no other session is alone in them, and none
// was once the change is Ready. Where the session itself is alone in all of
// them there is nothing to begin, and nothing to End: it returns nil.
func (t *Table) Share(dirs []ids.Object, id ID, now int64) (*Change, []Revocation) {
	if t.aloneIn(dirs, id) {
		return nil, nil
	}
	touches := make([]tree.Touch, len(dirs))
	for i, o := range dirs {
		touches[i] = tree.Touch{Object: o, What: pb.Grant_ALONE}
	}
	c, r := t.Begin(nil, touches, id)
	if !c.Ready() {
		for _, o := range dirs {
			if obj := t.objects[key{o, pb.Grant_ALONE}]; obj != nil && slices.ContainsFunc(obj.leases, (*lease).held) {
				t.shun(o, now)
			}
		}
	}
	return c, r
}

// aloneIn reports whether a session has a lease of kind ALONE on all of some
// directories, which nobody asked it to give up.
func (t *Table) aloneIn(dirs []ids.Object, id ID) bool {
	s := t.sessions[id]
	if s == nil || s.client == 0 {
		return len(dirs) == 0
	}
	for _, o := range dirs {
		if l := s.leases[key{o, pb.Grant_ALONE}]; l == nil || l.revoking != 0 {
			return false
		}
	}
	return true
}

// held reports whether a lease is a session's, and not one that only runs out
// because its slice changed hands: whose that was is not known, it may well be
// the one who works there now.
func (l *lease) held() bool { return l.session.client != 0 }

// othersAlone reports whether another session is alone in a directory.
func (t *Table) othersAlone(o ids.Object, id ID) bool {
	obj := t.objects[key{o, pb.Grant_ALONE}]
	if obj == nil {
		return false
	}
	for _, l := range obj.leases {
		if l.session.id != id {
			return true
		}
	}
	return false
}

func (t *Table) shun(o ids.Object, now int64) {
	if len(t.shunned) >= maxShunned {
		for old, until := range t.shunned {
			if until <= now {
				delete(t.shunned, old)
			}
		}
		if len(t.shunned) >= maxShunned {
			clear(t.shunned)
		}
	}
	t.shunned[o] = now + t.config.Shared
}
