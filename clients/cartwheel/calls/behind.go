package calls

import (
	"context"
	"maps"
	"slices"
	"time"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// What a client did to an object at the side is at the active only once it is merged.
// Until then what it does to the object goes to the side too: else a file that was
// written there could get its name at the active before it has its content.

const (
	// asideFor is how long an object's operations go aside without asking whether it is
	// merged.
	asideFor = 2 * time.Second
	// asideMost is after how long an object counts as merged where a copy without the
	// side log is all that answers. The active refuses then what it cannot do yet.
	asideMost = 15 * time.Second
	// readsFor is how long reads of a file show nothing older than the last one did.
	readsFor = time.Minute
	// maxAside bounds the objects that are remembered; with more, the active may hear of
	// some before they are merged.
	maxAside = 1 << 16
)

// side is where an object was changed at the side, and when that was noted, or was found
// to be not merged yet.
type side struct {
	node ids.Node
	at   time.Duration // by the cluster's clock
	// since is when it was changed there first.
	since time.Duration
}

// versions are those of a file's content that this client knows.
type versions struct {
	active uint64    // of the active; 0: none
	side   uint64    // that a side log made, and that is not known to be merged; 0: none
	at     time.Time // when they were noted last
}

// named is a name of a directory.
type named struct {
	dir  ids.Object
	name string
}

// NoteName notes what a name means that was made or looked up on eventual terms: an
// operation on the name is about that object.
func (s *Sender) NoteName(dir ids.Object, name string, o ids.Object) {
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	if s.means == nil || len(s.means) >= maxAside {
		s.means = map[named]ids.Object{}
	}
	s.means[named{dir, name}] = o
}

// Means is the object that a name means, as far as eventual terms have shown; 0: it is
// not known.
func (s *Sender) Means(dir ids.Object, name string) ids.Object {
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	return s.means[named{dir, name}]
}

// namedBy are the objects that the names of an operation mean, as far as is known.
func (s *Sender) namedBy(op *pb.Operation) (out []uint64) {
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	add := func(dir uint64, name []byte) {
		out = append(out, uint64(s.means[named{ids.Object(dir), string(name)}]))
	}
	switch o := op.Op.(type) {
	case *pb.Operation_Unlink:
		add(o.Unlink.Dir, o.Unlink.Name)
	case *pb.Operation_Rename:
		add(o.Rename.Dir, o.Rename.Name)
		add(o.Rename.NewDir, o.Rename.NewName)
	case *pb.Operation_Create:
		add(o.Create.Dir, o.Create.Name)
	}
	return out
}

// objectsOf are the objects that an operation changes, beside the names of directories.
func objectsOf(op *pb.Operation) []uint64 {
	switch o := op.Op.(type) {
	case *pb.Operation_Unlink:
		return []uint64{o.Unlink.Object}
	case *pb.Operation_Rename:
		return []uint64{o.Rename.Object, o.Rename.Target}
	case *pb.Operation_Create:
		return []uint64{o.Create.Object}
	}
	return method.Names(op)
}

// noteAside notes that an operation was done at a side. With a directory that it made,
// everything in that goes there.
func (s *Sender) noteAside(n ids.Node, op *pb.Operation, r *pb.Result) {
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	if s.asides == nil || len(s.asides) >= maxAside {
		s.asides = map[ids.Object]side{}
	}
	now := s.opt.Cluster.Now()
	at := side{n, now, now}
	if to := op.GetRename(); to != nil && s.means != nil {
		s.means[named{ids.Object(to.NewDir), string(to.NewName)}] = ids.Object(r.GetAttr().GetObject())
	}
	for _, o := range append(objectsOf(op), r.GetAttr().GetObject()) {
		if _, is := s.asides[ids.Object(o)]; o != 0 && !is {
			s.asides[ids.Object(o)] = at
		}
	}
}

// noteVersion notes which content of a file an answer on eventual terms showed.
func (s *Sender) noteVersion(a *pb.Attr) {
	if a.GetMode()&mount.TypeMask != mount.TypeRegular {
		return
	}
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	if s.known == nil {
		s.known = map[ids.Object]versions{}
	}
	if len(s.known) >= maxAside { // rather what no side log has
		maps.DeleteFunc(s.known, func(_ ids.Object, v versions) bool { return v.side == 0 })
	}
	if len(s.known) >= maxAside {
		clear(s.known)
	}
	v := s.known[ids.Object(a.Object)]
	if tree.IsOfSide(a) {
		v.side = a.Version
	} else {
		v = v.with(a)
	}
	v.at = s.opt.Wall()
	s.known[ids.Object(a.Object)] = v
}

// noteRead notes what an answer to a read on eventual terms shows. Where it lacks what this
// client was shown before, the answer is Again: a name and the content that it had then
// may come from two nodes, of which one is behind.
func (s *Sender) noteRead(answer Answer) error {
	var list []*pb.Attr
	switch r := answer.(type) {
	case *pb.GetAttrResponse:
		list = append(list, r.Attr)
	case *pb.ResolveResponse:
		for _, step := range r.Steps {
			list = append(list, step.Attr)
		}
	}
	for _, a := range list {
		if a.GetMode()&mount.TypeMask != mount.TypeRegular {
			continue
		}
		s.asideMu.Lock()
		v, known := s.known[ids.Object(a.Object)]
		s.asideMu.Unlock()
		if known && s.opt.Wall().Sub(v.at) < readsFor && v.lacks(a) {
			return fault.E(fault.Again, "calls.noteRead", ids.Object(a.Object).String(), "this node lacks what another one showed")
		}
		s.noteVersion(a)
	}
	return nil
}

// lacks reports whether attributes are older than what is known.
func (v versions) lacks(a *pb.Attr) bool {
	switch {
	case !tree.IsOfSide(a):
		return a.SideVersion < v.side || a.Version < v.active
	case v.side != 0:
		return a.Version < v.side
	}
	return a.SideBegan < v.active
}

// with is what is known once the active, or a copy, which may be older, showed a file.
func (v versions) with(a *pb.Attr) versions {
	v.active = max(v.active, a.Version)
	if a.SideVersion >= v.side {
		v.side = 0
	}
	return v
}

// setBase has a node refuse an operation where it lacks what this client knows of the
// file: the active what a side log has, another member also what the active has.
func (s *Sender) setBase(op *pb.Operation) {
	var o uint64
	switch is := op.Op.(type) {
	case *pb.Operation_Commit:
		o = is.Commit.Object
	case *pb.Operation_Link:
		o = is.Link.Object
	case *pb.Operation_Rename:
		if o = is.Rename.Object; o == 0 {
			o = s.namedBy(op)[0]
		}
	}
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	v := s.known[ids.Object(o)]
	op.Base, op.SideBase = v.active, v.side
}

// isAside reports whether an operation is about an object of which a side has something
// that is not merged yet, as far as is known.
func (s *Sender) isAside(ctx context.Context, op *pb.Operation) bool {
	for _, o := range slices.Concat(objectsOf(op), method.Names(op), s.namedBy(op)) {
		s.asideMu.Lock()
		at, is := s.asides[ids.Object(o)]
		s.asideMu.Unlock()
		if !is {
			continue
		}
		if s.opt.Cluster.Now()-at.at < asideFor || !s.forgetMerged(ctx, ids.Object(o), at) {
			return true
		}
	}
	return false
}

// forgetMerged forgets an object once it is merged.
func (s *Sender) forgetMerged(ctx context.Context, o ids.Object, at side) bool {
	merged := s.isMerged(ctx, at, o)
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	if merged {
		delete(s.asides, o)
	} else {
		s.asides[o] = side{at.node, s.opt.Cluster.Now(), at.since}
	}
	return merged
}

// isMerged asks a node whether it has an object as the active made it of what a side log
// had. One that does not answer may have more.
func (s *Sender) isMerged(ctx context.Context, at side, o ids.Object) bool {
	ctx, cancel := timeouts.Part(ctx, 4)
	defer cancel()
	var resp pb.GetAttrResponse
	h := &pb.ReadHeader{Slice: uint32(o.Slice()), Client: s.opt.Cluster.Client(), Eventual: true, Ticket: s.opt.Tickets.Of(o).Reached}
	b, err := s.opt.Cluster.Call(ctx, at.node, wire.Operation, method.GetAttr, &pb.GetAttrRequest{Header: h, Object: uint64(o)}, nil, &resp)
	b.Release()
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	v, late := s.known[o], s.opt.Cluster.Now()-at.since > asideMost
	switch {
	case err != nil:
		return false
	case !v.isIn(&resp):
		return late && versions{}.isIn(&resp)
	case v.side != 0:
		s.known[o] = v.with(resp.Attr)
	}
	return true
}

// isIn reports whether what a node answered has a side log's changes by way of the
// active. A copy may have neither the side log nor the merge.
func (v versions) isIn(resp *pb.GetAttrResponse) bool {
	if v.side == 0 { // not its content was changed
		return resp.Refusal != nil || !tree.IsOfSide(resp.Attr)
	}
	return resp.Refusal == nil && !tree.IsOfSide(resp.Attr) && resp.Attr.GetSideVersion() >= v.side
}
