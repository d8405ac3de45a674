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
	"google.golang.org/protobuf/proto"
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
	// asideLost is after how long it does so where the node does not answer at all.
	asideLost = 2 * time.Minute
	// readsFor is how long reads of a file show nothing older than the last one did.
	readsFor = time.Minute
	// maxAside bounds the objects that are remembered; with more, the active may hear of
	// some before they are merged.
	maxAside = 1 << 16
)

// versions are those of a file's content that this client knows.
type versions struct {
	active uint64    // of the active; 0: none
	side   uint64    // that a side log made, and that is not known to be merged; 0: none
	at     time.Time // when they were noted last
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
	named := s.means.by(op) // also what lost its name
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	if s.asides == nil || len(s.asides) >= maxAside {
		s.asides = map[ids.Object]side{}
	}
	now := s.opt.Cluster.Now()
	at := side{n, now, now}
	for _, o := range append(slices.Concat(objectsOf(op), named), r.GetAttr().GetObject()) {
		if o != 0 {
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
func (s *Sender) noteRead(ctx context.Context, request proto.Message, answer Answer) error {
	var list []*pb.Attr
	switch r := answer.(type) {
	case *pb.GetAttrResponse:
		list = append(list, r.Attr)
	case *pb.ResolveResponse:
		if req, is := request.(*pb.ResolveRequest); is {
			if err := s.lacksName(ctx, req, r); err != nil {
				return err
			}
		}
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
			o = s.means.by(op)[0]
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
	return slices.ContainsFunc(slices.Concat(objectsOf(op), method.Names(op), s.means.by(op)), func(o uint64) bool { return s.stillAside(ctx, ids.Object(o)) }) ||
		slices.ContainsFunc(namesIn(op), func(n named) bool { return s.nameAside(ctx, n) })
}

// stillAside reports whether a side has something of an object that is not merged yet, as
// far as is known.
func (s *Sender) stillAside(ctx context.Context, o ids.Object) bool {
	s.asideMu.Lock()
	at, is := s.asides[o]
	s.asideMu.Unlock()
	return is && (s.opt.Cluster.Now()-at.at < asideFor || !s.forgetMerged(ctx, o, at))
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

// isMerged asks a node whether it has an object, and names in it, as the active made them
// of what a side log had. One that does not answer may have more.
func (s *Sender) isMerged(ctx context.Context, at side, o ids.Object, names ...[]byte) bool {
	ctx, cancel := timeouts.Part(ctx, 4)
	defer cancel()
	var resp pb.GetAttrResponse
	h := &pb.ReadHeader{Slice: uint32(o.Slice()), Client: s.opt.Cluster.Client(), Eventual: true, Ticket: s.opt.Tickets.Of(o).Reached}
	b, err := s.opt.Cluster.Call(ctx, at.node, wire.Operation, method.GetAttr, &pb.GetAttrRequest{Header: h, Object: uint64(o), GoneToo: true, Names: names}, nil, &resp)
	b.Release()
	s.asideMu.Lock()
	defer s.asideMu.Unlock()
	v, late := s.known[o], s.opt.Cluster.Now()-at.since > asideMost
	switch {
	case err != nil:
		return late && fault.Is(err, fault.Stale) || s.opt.Cluster.Now()-at.since > asideLost
	case !v.isIn(&resp):
		return late && versions{}.isIn(&resp)
	case v.side != 0 && resp.Attr != nil:
		s.known[o] = v.with(resp.Attr)
	}
	return true
}

// isIn reports whether what a node answered has a side log's changes by way of the
// active. A copy may have neither the side log nor the merge.
func (v versions) isIn(resp *pb.GetAttrResponse) bool {
	switch a := resp.Attr; {
	case resp.Copy.GetObjectUnmerged():
		return false
	case resp.Refusal != nil:
		return v.side == 0
	case a == nil, v.side == 0: // it is gone, or not its content was changed
		return !tree.IsOfSide(a)
	default:
		return !tree.IsOfSide(a) && a.GetSideVersion() >= v.side
	}
}

// NoteName notes what a name means that was made or looked up on eventual terms: an
// operation on the name is about that object.
func (s *Sender) NoteName(dir ids.Object, name string, o ids.Object) {
	s.means.shown(named{dir, name}, o)
}

// Means is the object that a name means, as far as eventual terms have shown; 0: it is
// not known.
func (s *Sender) Means(dir ids.Object, name string) ids.Object {
	return s.means.get(named{dir, name}).is
}

// setNames has a node refuse an operation where one of its names means what this client
// took that from. What is merged, an active has. Copies may lack also what it did. It
// returns whether the node may lack the name that is to be moved or removed, and that
// this client gave.
func (s *Sender) setNames(ctx context.Context, op *pb.Operation, active bool) (mayLack bool) {
	op.NameWas, op.NewNameWas = nil, nil
	takes := op.GetUnlink() != nil || op.GetRename() != nil
	for i, n := range namesIn(op) {
		m := s.means.get(n)
		own := takes && i == 0 && m.own
		if !own && len(m.was) == 0 || !s.isLate(ctx, n, m, active) {
			continue
		}
		mayLack = mayLack || own
		var was []uint64
		for _, o := range m.was {
			was = append(was, uint64(o))
		}
		if i == 0 {
			op.NameWas = was
		} else {
			op.NewNameWas = was
		}
	}
	return mayLack
}

// isLate reports whether a node may lack what this client did to a name.
func (s *Sender) isLate(ctx context.Context, n named, m meaning, active bool) bool {
	return !active && s.opt.Cluster.Now()-m.at < copiesFor || s.nameAside(ctx, n)
}

// nameAside reports whether a side has something of a name that is not merged yet, as far
// as is known.
func (s *Sender) nameAside(ctx context.Context, n named) bool {
	at := s.means.get(n).aside
	switch {
	case at.node == "":
		return false
	case s.opt.Cluster.Now()-at.at < asideFor:
		return true
	case s.isMerged(ctx, at, n.dir, []byte(n.name)):
		s.means.merged(n, at)
		return false
	}
	s.means.asked(n, s.opt.Cluster.Now())
	return true
}

// lacksName refuses an answer that shows a name as it was before this client changed it.
func (s *Sender) lacksName(ctx context.Context, req *pb.ResolveRequest, resp *pb.ResolveResponse) error {
	at := ids.Object(req.Dir)
	for i, step := range resp.Steps {
		if i >= len(req.Names) {
			break
		}
		n, o := named{at, string(req.Names[i])}, ids.Object(step.Object)
		m := s.means.get(n)
		missing := o == 0 && fault.Kind(step.Kind) == fault.NotFound && m.own
		if (missing || slices.Contains(m.was, o)) && s.isLate(ctx, n, m, !IsCopy(resp)) {
			return fault.E(fault.Again, "calls.lacksName", string(req.Names[i]), "this node lacks what the client did to the name")
		}
		if at = o; o == 0 {
			break
		}
	}
	return nil
}
