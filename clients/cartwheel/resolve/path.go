package resolve

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// Warm learns what the names of a path mean, as far as that is not known, for a
// caller that then asks for them one by one.
func (r *Resolver) Warm(ctx context.Context, who mount.Caller, dir ids.Object, path []string) {
	last := path[len(path)-1]
	for _, f := range r.opt.Deferred.Which(func(f *pending.File) bool { return f.Name == last }) {
		_ = r.opt.Deferred.PublishFile(ctx, f) // if it is refused, the name is not there
	}
	for len(path) > 0 {
		e, _, known := r.opt.Names.Lookup(dir, path[0])
		met := []names.Entry{e}
		if !known {
			var err error
			if met, err = r.all(ctx, who, dir, path); err != nil {
				return // the caller hears of it when it asks for the names
			}
		}
		if e = met[len(met)-1]; e.Type != mount.TypeDir {
			return
		}
		dir, path = e.Object, path[len(met):]
	}
}

// resolved is the answer to a Resolve, with what is needed to learn it.
type resolved struct {
	resp *pb.ResolveResponse
	mark names.Mark
	by   ids.Node
}

// all asks the active of a directory what a name means, what the next one means
// in the directory that it names, and so on, and learns the answer. It returns at
// least one meaning. Those of the last names are missing where the way ends early:
// at a name that is not there, at what is no directory, or at one whose slice has
// another active, which is to be asked on.
func (r *Resolver) all(ctx context.Context, who mount.Caller, dir ids.Object, path []string) ([]names.Entry, error) {
	const op fault.Op = "resolve.all"
	flush, cancel := timeouts.ForOwn(ctx)
	r.opt.Deferred.FlushNames(flush)
	cancel()
	list := make([][]byte, len(path))
	for i, name := range path {
		list[i] = []byte(name)
	}
	var got resolved
	asked, below := false, uint32(0)
	err := calls.AsCaller(who, func(p *pb.Principal) (err error) {
		got.by, err = r.opt.Calls.Ask(ctx, dir.Slice(), p, method.Resolve, func(h *pb.ReadHeader) (proto.Message, calls.Answer) {
			if !asked { // the attempts are one question
				asked, below = true, r.bytesBelow(dir, path)
			}
			got.mark, got.resp = r.opt.Names.MarkDir(dir), &pb.ResolveResponse{}
			h.Ticket = r.opt.Tickets.Of(dir).Reached
			return &pb.ResolveRequest{Header: h, Dir: uint64(dir), Names: list, Content: true, BelowBytes: below}, got.resp
		})
		if err == nil && len(got.resp.Steps) == 0 {
			return fault.E(fault.Corrupt, op, dir.String(), "the answer has no steps")
		}
		if err == nil {
			err = refusedBy(got.resp.Steps[len(got.resp.Steps)-1], op, dir)
		}
		return err
	})
	if got.resp == nil || len(got.resp.Steps) == 0 {
		return nil, err
	}
	met := r.learn(dir, path, &got)
	if err == nil && len(met) == 0 {
		err = fault.E(fault.Corrupt, op, dir.String(), "the answer names no object")
	}
	return met, err
}

// bytesBelow is how many bytes of names below the last of a path to ask for.
func (r *Resolver) bytesBelow(dir ids.Object, path []string) uint32 {
	if !r.opt.IsFar(dir.Slice()) {
		return 0
	}
	return r.below.Bytes(dir, path[len(path)-1])
}

// refusedBy is the error of a walk's last step, nil where there is none or the
// name is not there.
func refusedBy(s *pb.ResolveResponse_Step, op fault.Op, dir ids.Object) error {
	if k := fault.Kind(s.Kind); k != fault.None && k != fault.NotFound {
		return fault.E(k, op, dir.String(), "")
	}
	return nil
}

// learn learns an answer and returns what the names mean.
func (r *Resolver) learn(dir ids.Object, path []string, got *resolved) (met []names.Entry) {
	made := r.opt.Deferred.Dirs()
	if calls.IsCopy(got.resp) {
		got.mark.OfCopy()
	}
	r.opt.Names.Learn(&got.mark, got.by, got.resp.Grants, func(l *names.Learner) {
		l.Attr(got.resp.Dir, false)
		at := dir
		for i, step := range got.resp.Steps {
			e := names.Entry{Object: ids.Object(step.Object), Type: step.TypeMode}
			if i >= len(path) || e.Object == 0 && fault.Kind(step.Kind) != fault.NotFound {
				break // why the walk does not go on, or nonsense
			}
			l.Attr(step.Attr, false)
			r.opt.Tickets.Note(e.Object, step.Ticket)
			l.Entry(at, path[i], e)
			met = append(met, e)
			at = e.Object
		}
		for _, b := range got.resp.Below {
			if d := ids.Object(b.Dir); !made[d] && l.Below(d) {
				r.learnBelow(l, d, b)
			}
		}
	})
	at := dir
	for i, e := range met {
		if e.Object != 0 {
			r.seen.note(at, path[i], e.Object)
		}
		at = e.Object
	}
	return met
}

// learnBelow learns names of a directory that came along with an answer.
func (r *Resolver) learnBelow(l *names.Learner, dir ids.Object, b *pb.Names) {
	for _, e := range b.Entries {
		l.Attr(e.Attr, false)
		r.opt.Tickets.Note(ids.Object(e.Object), e.Ticket)
		l.Entry(dir, string(e.Name), names.Entry{Object: ids.Object(e.Object), Type: e.Mode})
	}
	if b.Whole {
		l.Complete(dir)
	}
}
