package tree

import (
	"bytes"
	"maps"
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

// compare demands that world and twin are the same, and that the world's own
// books are right.
func (p *pair) compare() {
	p.t.Helper()
	p.recover()
	p.sweep()
	for _, q := range p.places {
		p.flush(q)
		if n := p.twin.all; q.over.Len() != 0 || len(q.over.items) != 0 || len(q.over.near) != 0 || n == nil {
			p.t.Errorf("the overlay still holds %d operations, %d items", q.over.Len(), len(q.over.items))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.twin.all)) {
		p.compareThing(p.twin.all[id])
	}
	for id, q := range p.places {
		p.books(id, q)
	}
}

func (p *pair) compareThing(n *thing) {
	p.t.Helper()
	q := p.places[n.id.Slice()]
	a, err := GetAttr(q.over, n.id, true, false)
	if err != nil {
		p.t.Errorf("%v (nlink %d): %v", n.id, n.nlink, err)
		return
	}
	if a.Mode != n.mode || a.Uid != n.uid || a.Gid != n.gid || int(a.Nlink) != n.nlink || string(a.Target) != n.target {
		p.t.Errorf("%v: got mode %o owner %d:%d nlink %d, want %o %d:%d %d", n.id, a.Mode, a.Uid, a.Gid, a.Nlink, n.mode, n.uid, n.gid, n.nlink)
	}
	if n.dir() {
		if n.nlink > 0 && a.Parent != uint64(n.parent.id) {
			p.t.Errorf("%v: got parent %d, want %v", n.id, a.Parent, n.parent.id)
		}
		p.compareNames(q, n)
		return
	}
	if p.rng.IntN(4) == 0 && n.mode&TypeMask == TypeRegular && !bytes.Equal(p.content(a), n.data) {
		p.t.Errorf("%v: content differs: %d bytes, want %d", n.id, a.Size, len(n.data))
	}
	if a.Size != uint64(len(n.data)+len(n.target)) {
		p.t.Errorf("%v: size %d, want %d", n.id, a.Size, len(n.data))
	}
	if d := p.twin.all[ids.Object(a.Parent)]; a.Parent != 0 && (d == nil || !slices.Contains(slices.Collect(maps.Values(d.kids)), n) || n.nlink != 1) {
		p.t.Errorf("%v: %d is said to cover it, and does not name it alone", n.id, a.Parent)
	}
}

// compareNames lists in pages of three.
func (p *pair) compareNames(q *place, n *thing) {
	p.t.Helper()
	want := slices.Sorted(maps.Keys(n.kids))
	var got []string
	after, more := []byte(nil), true
	for more {
		var page []NamedEntry
		var err error
		if page, more, err = List(q.over, n.id, after, 3); err != nil {
			p.t.Fatal(err)
		}
		for _, e := range page {
			got = append(got, string(e.Name))
			if k := n.kids[string(e.Name)]; k == nil || k.id != e.Object || k.mode&TypeMask != e.Type {
				p.t.Errorf("%v/%s names %v", n.id, e.Name, e.Object)
			}
			after = e.Name
		}
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("%v: got names %q, want %q", n.id, got, want)
	}
}

// books checks counters, references, locks and leftovers of one slice.
func (p *pair) books(id ids.Slice, q *place) {
	p.t.Helper()
	objects, stored := uint64(0), uint64(0)
	for k, n := range p.twin.all {
		if k.Slice() == id && n != nil {
			objects++
		}
	}
	refs := map[chunk.Address]uint64{}
	count := func(root chunk.Address, times uint64) {
		var visit func(a chunk.Address)
		visit = func(a chunk.Address) {
			refs[a] += times
			if err := chunk.Refs(p.chunks[a], func(b chunk.Address, isNode bool) {
				if isNode {
					visit(b)
				} else {
					refs[b] += times
				}
			}); err != nil {
				p.t.Fatal(err)
			}
		}
		visit(root)
	}
	got := map[chunk.Address]uint64{}
	for k, value := range q.state.values {
		switch k[0] {
		case keyInode:
			n, err := DecodeInode(objectOf([]byte(k)), value)
			if err != nil {
				p.t.Fatal(err)
			}
			stored += n.Stored
			if !n.Root.IsZero() {
				count(n.Root, 1)
			}
			if p.twin.all[n.Object] == nil {
				p.t.Errorf("%v is left over, nlink %d", n.Object, n.Nlink)
			}
		case keyRefs:
			r, err := DecodeRefs(value)
			if err != nil {
				p.t.Fatal(err)
			}
			if r.Count > 0 {
				got[chunk.Address([]byte(k)[1:])] = r.Count
			}
		case keyUsed:
			p.usedUp(objectOf([]byte(k)), value)
		case keyLock, keyIntent, keyPart, keyNoname, keyNamed:
			p.t.Errorf("a key %q is left over", k)
		}
	}
	if err := ListDead(q.state, nil, func(d Dead) bool { count(d.Root, d.Count); return true }); err != nil {
		p.t.Fatal(err)
	}
	for o := range p.taken {
		if o.Slice() == id && p.twin.all[o] == nil && q.state.values[string(usedKey(o))] == nil {
			p.t.Errorf("%v is gone, and nothing says that it was", o)
		}
	}
	if !maps.Equal(got, refs) {
		p.t.Errorf("slice %d counts %d references, there are %d", id, len(got), len(refs))
	}
	s, err := ReadState(q.state)
	if err != nil || s.Objects != objects || s.Stored != stored || s.Locks != 0 {
		p.t.Errorf("slice %d: state %+v, want %d objects, %d bytes stored: %v", id, s, objects, stored, err)
	}
}

// usedUp checks one block of given numbers: those are marked whose objects were
// made and are gone.
func (p *pair) usedUp(first ids.Object, bits []byte) {
	p.t.Helper()
	for i := range usedBlock {
		o := first + ids.Object(i)
		if got, want := bits[i/8]&(1<<(i%8)) != 0, p.taken[o] && p.twin.all[o] == nil; got != want {
			p.t.Errorf("%v is marked as gone: %v, want %v", o, got, want)
		}
		if p.taken[o] && p.twin.all[o] == nil {
			p.done["given and gone"]++
		}
	}
}
