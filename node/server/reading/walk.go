package reading

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// Resolve walks names from a directory, as far as this node acts for the
// slices met.
func (s *Server) Resolve(ctx context.Context, who Asker, req *pb.ResolveRequest) (*pb.ResolveResponse, error) {
	const op fault.Op = "reading.Resolve"
	h := header(req.Header)
	if len(req.Names) > maxNames {
		return nil, fault.Errorf(fault.TooLarge, op, "", "%d names in one request", len(req.Names))
	}
	if err := s.Reached(ctx, &who, ids.Object(req.Dir), h.Ticket); err != nil {
		return nil, err
	}
	var out *pb.ResolveResponse
	for range 3 { // the role may change meanwhile; twice is rare
		admitted, refused := s.admit(ids.Object(req.Dir).Slice(), &who, h.Epoch)
		if refused != nil {
			return &pb.ResolveResponse{Refusal: refused}, nil
		}
		w := walk{s: s, who: who, content: req.Content, below: int(req.BelowBytes), out: &pb.ResolveResponse{}}
		err := again(ctx, func() error {
			w.reset()
			defer w.release()
			return s.asOf(ctx, &who, admitted.Slice, func() error {
				return s.ofCopy(admitted, w.run(ctx, ids.Object(req.Dir), req.Names, admitted))
			})
		})
		if err != nil {
			return nil, err
		}
		if w.stands() {
			if w.out.Copy, err = s.copied(ctx, &who, admitted); err != nil {
				return nil, err
			}
			out = w.out
			break
		}
	}
	if out == nil {
		return &pb.ResolveResponse{Refusal: s.refusal(ids.Object(req.Dir).Slice(), nil, fault.NotActive, "the slice changes hands")}, nil
	}
	out.Hlc = uint64(s.HLC.Last())
	return out, nil
}

// walk is one Resolve.
type walk struct {
	s       *Server
	who     Asker
	content bool
	below   int // bytes of names below the last one that are wanted
	out     *pb.ResolveResponse
	met     []ids.Slice
	shared  []func() // ends what others may not be alone in
}

func (w *walk) reset() {
	w.out = &pb.ResolveResponse{AsOf: uint64(w.who.AsOf)}
	w.met = w.met[:0]
}

// names takes the lease on a directory's names once nobody else is alone in it,
// and reports whether it got one.
func (w *walk) names(ctx context.Context, p *operate.Published, dir ids.Object) (leased bool, err error) {
	if w.who.AsOf != 0 || w.s.isCopy(&w.who, p) {
		return false, nil
	}
	end, err := w.s.Leases.Shared(ctx, w.who.Session, dir)
	if err != nil {
		return false, err
	}
	w.shared = append(w.shared, end)
	before := len(w.out.Grants)
	w.out.Grants = w.s.grant(w.out.Grants, w.who, p, dir, pb.Grant_NAMES)
	return len(w.out.Grants) > before, nil
}

// release lets others be alone again.
func (w *walk) release() {
	for _, end := range w.shared {
		end()
	}
	w.shared = nil
}

// stands reports whether the node still acts for everything that was read.
func (w *walk) stands() bool {
	for _, slice := range w.met {
		if !w.s.still(slice) {
			return false
		}
	}
	return true
}

// run walks. It ends early at a name that does not exist, at what is no
// directory, and where another node acts.
func (w *walk) run(ctx context.Context, dir ids.Object, names [][]byte, p *operate.Published) error {
	v := w.enter(dir.Slice(), p)
	if _, err := w.names(ctx, p, dir); err != nil {
		return err
	}
	d, err := tree.Directory(v, dir, &w.who.Principal, 1)
	if err != nil {
		return err
	}
	w.out.Dir = d.Attr()
	w.s.Stamp(&w.who, w.out.Dir, chunk.Address{})
	for i, name := range names {
		last := i == len(names)-1
		e, err := tree.Lookup(v, dir, name)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.NameTooLong) {
			w.out.Steps = append(w.out.Steps, &pb.ResolveResponse_Step{Kind: uint32(fault.KindOf(err))})
			return nil
		}
		if err != nil {
			return err
		}
		step := &pb.ResolveResponse_Step{Object: uint64(e.Object), TypeMode: e.Type}
		w.out.Steps = append(w.out.Steps, step)
		if e.Object.Slice() != dir.Slice() {
			// Of each slice the time that is read must be closed: a walk through the past
			// ends where its slice does.
			if p = w.s.Published(e.Object.Slice()); w.who.AsOf != 0 || !p.Serves(w.s.Clock()) && !w.s.isCopy(&w.who, p) {
				step.Ticket = w.s.Name(&w.who, e.Object)
				return nil // only its ID is known here
			}
			v = w.enter(e.Object.Slice(), p)
		}
		isDir, leased := e.Type == tree.TypeDir, false
		if isDir {
			if leased, err = w.names(ctx, p, e.Object); err != nil {
				return err
			}
		} else if e.Object.Slice() != dir.Slice() || last && w.content {
			w.out.Grants = w.s.grant(w.out.Grants, w.who, p, e.Object, pb.Grant_FILE)
		}
		if step.Attr, err = tree.GetAttr(v, e.Object, last && w.content, false); err != nil {
			return err
		}
		w.s.Stamp(&w.who, step.Attr, chunk.Address{})
		if last && leased && w.below > 0 {
			names, grants := w.s.below(w.who, p, e.Object, w.below)
			w.out.Below, w.out.Grants = names, append(w.out.Grants, grants...)
		}
		if last {
			return nil
		}
		if e.Type == tree.TypeLink {
			return nil // the caller follows it
		}
		if stop := w.search(v, e.Object, isDir); stop != fault.None {
			w.out.Steps = append(w.out.Steps, &pb.ResolveResponse_Step{Kind: uint32(stop)})
			return nil
		}
		dir = e.Object
	}
	return nil
}

// search says why the walk cannot go below an object, or None.
func (w *walk) search(v tree.View, o ids.Object, isDir bool) fault.Kind {
	if !isDir {
		return fault.NotDirectory
	}
	if _, err := tree.Directory(v, o, &w.who.Principal, 1); err != nil {
		return fault.KindOf(err)
	}
	return fault.None
}

// enter goes on in another slice. What is a copy need not stand.
func (w *walk) enter(slice ids.Slice, p *operate.Published) tree.View {
	if !w.s.isCopy(&w.who, p) {
		w.met = append(w.met, slice)
	}
	return w.s.seen(&w.who, p, slice)
}
