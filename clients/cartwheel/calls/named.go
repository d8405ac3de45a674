package calls

import (
	"slices"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Of what one node did to a name another one may have heard nothing yet: what a side did
// is at the active only once it is merged, and a copy is behind its active. So a client
// remembers what it did to names itself. A node that shows a name as it was before, or
// would go on from there, counts as one that has no answer.

// maxNames bounds the names that are known; with more, all are forgotten, and nodes
// that are behind may show what they have.
const maxNames = 1 << 16

// copiesFor is how long a copy may lack what its active did, as far as clients assume.
const copiesFor = 10 * time.Second

// side is where an object was changed at the side, and when that was noted, or was found
// to be not merged yet.
type side struct {
	node ids.Node
	at   time.Duration // by the cluster's clock
	// since is when it was changed there last.
	since time.Duration
}

// maxWas bounds what a name is known to have been taken from.
const maxWas = 16

// named is a name of a directory.
type named struct {
	dir  ids.Object
	name string
}

// meaning is what is known of a name.
type meaning struct {
	is  ids.Object   // 0: nothing, or it is not known
	was []ids.Object // this client took the name from these; the last one at the end
	own bool         // this client gave the name to what it means
	// at is when this client changed the name last, by the cluster's clock.
	at time.Duration
	// aside is where this client changed the name, if that may not be merged yet.
	aside side
}

// meanings is what is known of names. It is safe for use by many goroutines.
type meanings struct {
	mu sync.Mutex // guards below
	of map[named]meaning
}

// shown notes what a name means that was looked up.
func (t *meanings) shown(n named, o ids.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.of[n]; m.is != o {
		m.is, m.own = o, false
		t.setLocked(n, m)
	}
}

// setLocked sets what is known of a name. t.mu is held.
func (t *meanings) setLocked(n named, m meaning) {
	if t.of == nil || len(t.of) >= maxNames {
		t.of = map[named]meaning{}
	}
	var was []ids.Object
	for _, o := range m.was {
		if o != 0 && o != m.is && !slices.Contains(was, o) {
			was = append(was, o)
		}
	}
	m.was = was[max(0, len(was)-maxWas):]
	t.of[n] = m
}

func (t *meanings) get(n named) meaning {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[n]
}

// by are the objects that the names of an operation mean, as far as is known.
func (t *meanings) by(op *pb.Operation) (out []uint64) {
	for _, n := range namesIn(op) {
		out = append(out, uint64(t.get(n).is))
	}
	return out
}

// namesIn are the name that an operation gives, takes or moves, and a rename's new one.
func namesIn(op *pb.Operation) (out []named) {
	add := func(dir uint64, name []byte) { out = append(out, named{ids.Object(dir), string(name)}) }
	switch o := op.Op.(type) {
	case *pb.Operation_Create:
		add(o.Create.Dir, o.Create.Name)
	case *pb.Operation_Link:
		add(o.Link.Dir, o.Link.Name)
	case *pb.Operation_Unlink:
		add(o.Unlink.Dir, o.Unlink.Name)
	case *pb.Operation_Rename:
		add(o.Rename.Dir, o.Rename.Name)
		add(o.Rename.NewDir, o.Rename.NewName)
	}
	return out
}

// merged notes that what was done to a name aside is merged, unless it was changed since.
func (t *meanings) merged(n named, aside side) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.of[n]; m.aside.since == aside.since {
		m.aside = side{}
		t.of[n] = m
	}
}

// asked notes when it was asked last whether a name is merged.
func (t *meanings) asked(n named, at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[n]
	m.aside.at = at
	t.of[n] = m
}

// done notes what an operation on eventual terms made of names, at the active or aside, at
// that node.
func (t *meanings) done(op *pb.Operation, r *pb.Result, aside ids.Node, now time.Duration) {
	if b := op.GetBatch(); b != nil {
		for i, part := range b.Operations[:min(len(b.Operations), len(r.GetResults()))] {
			t.done(part, r.Results[i], aside, now)
		}
		return
	}
	if list := namesIn(op); len(list) > 0 && fault.Kind(r.GetKind()) == fault.None {
		t.changed(op, list, r, aside, now)
	}
}

// changed notes what an operation that was done made of its names.
func (t *meanings) changed(op *pb.Operation, list []named, r *pb.Result, aside ids.Node, now time.Duration) {
	o := ids.Object(r.GetAttr().GetObject())
	t.mu.Lock()
	defer t.mu.Unlock()
	set := func(n named, o, from ids.Object) {
		m := t.of[n]
		if now-m.at >= copiesFor && m.aside.node == "" {
			m.was = nil // all nodes have what came of it
		}
		m.was = append(slices.Clone(m.was), m.is, from)
		if m.is, m.own, m.at = o, o != 0, now; aside != "" {
			m.aside = side{aside, now, now}
		}
		t.setLocked(n, m)
	}
	switch is := op.Op.(type) {
	case *pb.Operation_Create, *pb.Operation_Link:
		set(list[0], o, 0)
	case *pb.Operation_Unlink:
		set(list[0], 0, ids.Object(is.Unlink.Object))
	case *pb.Operation_Rename:
		if is.Rename.Exchange || list[0] == list[1] || r.GetExisted() {
			delete(t.of, list[0])
			delete(t.of, list[1])
			return
		}
		set(list[0], 0, o)
		set(list[1], o, 0)
	}
}
