package tree

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// twin is a file system as POSIX words it, in memory, with no thought of speed,
// slices or crashes: what Evaluate is compared with.
type twin struct {
	root *thing
	all  map[ids.Object]*thing
}

type thing struct {
	id             ids.Object
	mode, uid, gid uint32
	nlink          int
	data           []byte
	target         string
	kids           map[string]*thing
	parent         *thing
	holders        map[uint64]bool
}

func (n *thing) dir() bool { return n.mode&TypeMask == TypeDir }

func newTwin() *twin {
	r := &thing{id: ids.RootObject, mode: TypeDir | 0o755, nlink: 2, kids: map[string]*thing{}}
	r.parent = r
	return &twin{root: r, all: map[ids.Object]*thing{r.id: r}}
}

func may(p Principal, n *thing, want uint32) bool {
	if p.UID == 0 {
		return true
	}
	bits := n.mode & 7
	if p.UID == n.uid {
		bits = n.mode >> 6 & 7
	} else if p.in(n.gid) {
		bits = n.mode >> 3 & 7
	}
	return bits&want == want
}

// removable is what a directory says about taking a name of it away.
func removable(p Principal, d, n *thing, wantDir bool) fault.Kind {
	switch {
	case !may(p, d, 3):
		return fault.Permission
	case d.mode&sticky != 0 && p.UID != 0 && p.UID != n.uid && p.UID != d.uid:
		return fault.NotOwner
	case wantDir && !n.dir():
		return fault.NotDirectory
	case !wantDir && n.dir():
		return fault.IsDirectory
	}
	return fault.None
}

func (w *twin) create(p Principal, d *thing, name string, mode, umask uint32, target string, excl, trunc bool) (*thing, bool, fault.Kind) {
	if len(name) > 255 {
		return nil, false, fault.NameTooLong
	}
	if !d.dir() {
		return nil, false, fault.NotDirectory
	}
	if !may(p, d, 1) {
		return nil, false, fault.Permission
	}
	if n := d.kids[name]; n != nil {
		if excl || mode&TypeMask != TypeRegular {
			return nil, false, fault.Exists
		}
		if n.dir() {
			return nil, false, fault.IsDirectory
		}
		if trunc && n.mode&TypeMask == TypeRegular {
			if !may(p, n, 2) {
				return nil, false, fault.Permission
			}
			w.resize(p, n, 0)
		}
		return n, true, fault.None
	}
	if d.nlink == 0 {
		return nil, false, fault.NotFound
	}
	if !may(p, d, 3) {
		return nil, false, fault.Permission
	}
	n := &thing{mode: mode &^ (umask & 0o777), uid: p.UID, gid: p.GID, nlink: 1, parent: d, target: target}
	if mode&TypeMask == TypeLink {
		n.mode = TypeLink | 0o777
	}
	if d.mode&setGID != 0 {
		n.gid = d.gid
		if n.dir() {
			n.mode |= setGID
		} else if n.mode&0o2010 == 0o2010 && p.UID != 0 && !p.in(n.gid) && mode&0o010 != 0 {
			n.mode &^= setGID
		}
	}
	if n.dir() {
		n.nlink, n.kids = 2, map[string]*thing{}
		d.nlink++
	}
	d.kids[name] = n
	return n, false, fault.None
}

func (w *twin) drop(n *thing) {
	if n.dir() {
		n.nlink = 0
	} else {
		n.nlink--
	}
	w.reap(n)
}

func (w *twin) reap(n *thing) {
	if n.nlink == 0 && len(n.holders) == 0 {
		delete(w.all, n.id)
	}
}

func (w *twin) unlink(p Principal, d *thing, name string, dir bool) fault.Kind {
	if !d.dir() {
		return fault.NotDirectory
	}
	if !may(p, d, 1) {
		return fault.Permission
	}
	n := d.kids[name]
	if n == nil {
		return fault.NotFound
	}
	if k := removable(p, d, n, dir); k != 0 {
		return k
	}
	if len(n.kids) > 0 {
		return fault.NotEmpty
	}
	delete(d.kids, name)
	if n.dir() {
		d.nlink--
	}
	w.drop(n)
	return fault.None
}

func (w *twin) link(p Principal, n, d *thing, name string) fault.Kind {
	switch {
	case !d.dir():
		return fault.NotDirectory
	case !may(p, d, 1):
		return fault.Permission
	case d.kids[name] != nil:
		return fault.Exists
	case d.nlink == 0:
		return fault.NotFound
	case !may(p, d, 3):
		return fault.Permission
	case n.dir():
		return fault.NotOwner
	case n.nlink == 0:
		return fault.NotFound
	}
	n.nlink++
	d.kids[name] = n
	return fault.None
}

func below(d, top *thing) bool {
	for ; ; d = d.parent {
		if d == top {
			return true
		}
		if d.parent == d {
			return false
		}
	}
}

// rename moves a name; seen is what its caller took the two to mean, 0 where it
// does not say.
func (w *twin) rename(p Principal, d *thing, name string, e *thing, other string, noReplace, exchange bool, seen [2]ids.Object) fault.Kind {
	if noReplace && exchange {
		return fault.Invalid
	}
	if !d.dir() || !e.dir() {
		return fault.NotDirectory
	}
	if !may(p, d, 1) || !may(p, e, 1) {
		return fault.Permission
	}
	if d.nlink == 0 || e.nlink == 0 {
		return fault.NotFound
	}
	n, m := d.kids[name], e.kids[other]
	switch {
	case n == nil:
		return fault.NotFound
	case m != nil && noReplace:
		return fault.Exists
	case m == nil && exchange:
		return fault.NotFound
	case seen[0] != 0 && seen[0] != n.id:
		return fault.Stale
	case seen[1] != 0 && (m == nil || seen[1] != m.id):
		return fault.Stale
	case n.dir() && below(e, n):
		return fault.Invalid
	case m != nil && exchange && m != n && m.dir() && below(d, m):
		return fault.Invalid
	case m != nil && m != n && m == d:
		return fault.NotEmpty
	case n == m:
		return fault.None
	}
	if k := removable(p, d, n, n.dir()); k != 0 {
		return k
	}
	switch {
	case m == nil && e.nlink == 0:
		return fault.NotFound
	case m == nil && !may(p, e, 3):
		return fault.Permission
	case m != nil && exchange:
		if k := removable(p, e, m, m.dir()); k != 0 {
			return k
		}
	case m != nil:
		if k := removable(p, e, m, n.dir()); k != 0 {
			return k
		}
	}
	if n.dir() && d != e && !may(p, n, 2) || exchange && m.dir() && d != e && !may(p, m, 2) {
		return fault.Permission
	}
	if m != nil && !exchange && len(m.kids) > 0 {
		return fault.NotEmpty
	}
	w.move(d, name, e, other, n, m, exchange)
	return fault.None
}

func (w *twin) move(d *thing, name string, e *thing, other string, n, m *thing, exchange bool) {
	delete(d.kids, name)
	if n.dir() {
		d.nlink--
	}
	if m != nil && m.dir() {
		e.nlink--
	}
	e.kids[other] = n
	if n.dir() {
		e.nlink++
		n.parent = e
	}
	if exchange {
		d.kids[name] = m
		if m.dir() {
			d.nlink++
			m.parent = d
		}
	} else if m != nil {
		w.drop(m)
	}
}

func (w *twin) clearIDs(p Principal, n *thing) {
	n.mode &^= setUID
	if n.mode&0o010 != 0 || (p.UID != 0 && !p.in(n.gid)) {
		n.mode &^= setGID
	}
}

func (w *twin) resize(p Principal, n *thing, size int) {
	if size <= len(n.data) {
		n.data = n.data[:size:size]
	} else {
		n.data = append(n.data, make([]byte, size-len(n.data))...)
	}
	if p.UID != 0 {
		w.clearIDs(p, n)
	}
}

func (w *twin) truncate(p Principal, n *thing, size int) fault.Kind {
	switch {
	case n.dir():
		return fault.IsDirectory
	case n.mode&TypeMask != TypeRegular:
		return fault.Invalid
	case !may(p, n, 2):
		return fault.Permission
	}
	w.resize(p, n, size)
	return fault.None
}

func (w *twin) write(p Principal, n *thing, offset int, data []byte) fault.Kind {
	switch {
	case n.dir():
		return fault.IsDirectory
	case n.mode&TypeMask != TypeRegular:
		return fault.Invalid
	case p.UID != n.uid && !may(p, n, 2):
		return fault.Permission
	}
	if offset < 0 {
		offset = len(n.data)
	}
	if need := offset + len(data); need > len(n.data) {
		n.data = append(n.data, make([]byte, need-len(n.data))...)
	}
	copy(n.data[offset:], data)
	if p.UID != 0 {
		w.clearIDs(p, n)
	}
	return fault.None
}

func (w *twin) chmod(p Principal, n *thing, mode uint32) fault.Kind {
	if p.UID != 0 && p.UID != n.uid {
		return fault.NotOwner
	}
	if p.UID != 0 && !p.in(n.gid) {
		mode &^= setGID
	}
	n.mode = n.mode&TypeMask | mode
	return fault.None
}

func (w *twin) chown(p Principal, n *thing, uid, gid uint32) fault.Kind {
	if p.UID != 0 && (p.UID != n.uid || uid != n.uid || (gid != n.gid && !p.in(gid))) {
		return fault.NotOwner
	}
	if !n.dir() {
		w.clearIDs(p, n)
	}
	n.uid, n.gid = uid, gid
	return fault.None
}

func (w *twin) hold(n *thing, client uint64, release bool) {
	if !release {
		if n.holders == nil {
			n.holders = map[uint64]bool{}
		}
		n.holders[client] = true
		return
	}
	delete(n.holders, client)
	w.reap(n)
}
