package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// resolved is the answer to a Resolve, with what is needed to learn it.
type resolved struct {
	resp *pb.ResolveResponse
	mark names.Mark
	by   ids.Node
}

// resolve asks the active of a directory for one name, and learns the answer.
func (c *Client) resolve(ctx context.Context, who mount.Caller, dir ids.Object, name string) (names.Entry, error) {
	if f := c.deferred.At(dir, name); f != nil {
		_ = c.deferred.PublishFile(ctx, f) // if it is refused, the name is not there
	}
	met, err := c.resolveAll(ctx, who, dir, []string{name})
	if err != nil {
		return names.Entry{}, err
	}
	return met[0], nil
}

// resolveAll asks the active of a directory what a name means, what the next
// one means in the directory that it names, and so on, and learns the answer.
// It returns at least one meaning. Those of the last names are missing where
// the way ends early: at a name that is not there, at what is no directory, or
// at one whose slice has another active, who is to be asked on.
func (c *Client) resolveAll(ctx context.Context, who mount.Caller, dir ids.Object, path []string) ([]names.Entry, error) {
	const op fault.Op = "cartwheel.Lookup"
	list := make([][]byte, len(path))
	for i, name := range path {
		list[i] = []byte(name)
	}
	var r resolved
	asked, below := false, uint32(0)
	err := calls.AsCaller(who, func(p *pb.Principal) (err error) {
		r.by, err = c.calls.Ask(ctx, dir.Slice(), p, method.Resolve, func(h *pb.ReadHeader) (proto.Message, calls.Answer) {
			if !asked { // the attempts are one question
				asked, below = true, c.toBringBelow(dir, path)
			}
			r.mark, r.resp = c.names.MarkDir(dir), &pb.ResolveResponse{}
			h.Ticket = c.tickets.Of(dir).Reached
			return &pb.ResolveRequest{Header: h, Dir: uint64(dir), Names: list, Content: true, BelowBytes: below}, r.resp
		})
		if err == nil && len(r.resp.Steps) == 0 {
			return fault.E(fault.Corrupt, op, dir.String(), "the answer has no steps")
		}
		if err == nil {
			err = refusedBy(r.resp.Steps[len(r.resp.Steps)-1], op, dir)
		}
		return err
	})
	if r.resp == nil || len(r.resp.Steps) == 0 {
		return nil, err
	}
	met := c.learnResolved(dir, path, &r)
	if err == nil && len(met) == 0 {
		err = fault.E(fault.Corrupt, op, dir.String(), "the answer names no object")
	}
	return met, err
}

// refusedBy is the error of a walk's last step, nil where there is none or the
// name is not there.
func refusedBy(s *pb.ResolveResponse_Step, op fault.Op, dir ids.Object) error {
	if k := fault.Kind(s.Kind); k != fault.None && k != fault.NotFound {
		return fault.E(k, op, dir.String(), "")
	}
	return nil
}

// learnResolved learns an answer and returns what the names mean.
func (c *Client) learnResolved(dir ids.Object, path []string, r *resolved) (met []names.Entry) {
	made := c.deferred.Dirs()
	c.names.Learn(&r.mark, r.by, r.resp.Grants, func(l *names.Learner) {
		l.Attr(r.resp.Dir, false)
		at := dir
		for i, step := range r.resp.Steps {
			e := names.Entry{Object: ids.Object(step.Object), Type: step.TypeMode}
			if i >= len(path) || e.Object == 0 && fault.Kind(step.Kind) != fault.NotFound {
				break // why the walk does not go on, or nonsense
			}
			l.Attr(step.Attr, false)
			c.tickets.Note(e.Object, step.Ticket)
			l.Entry(at, path[i], e)
			met = append(met, e)
			at = e.Object
		}
		for _, b := range r.resp.Below {
			if d := ids.Object(b.Dir); !made[d] && l.Below(d) {
				c.learnBelow(l, d, b)
			}
		}
	})
	at := dir
	for i, e := range met {
		if e.Object != 0 {
			c.seen.note(at, path[i], e.Object)
		}
		at = e.Object
	}
	return met
}

// learnBelow learns names of a directory that came along with an answer.
func (c *Client) learnBelow(l *names.Learner, dir ids.Object, b *pb.Names) {
	for _, e := range b.Entries {
		l.Attr(e.Attr, false)
		c.tickets.Note(ids.Object(e.Object), e.Ticket)
		l.Entry(dir, string(e.Name), names.Entry{Object: ids.Object(e.Object), Type: e.Mode})
	}
	if b.Whole {
		l.Complete(dir)
	}
}

// toBringBelow is how many bytes of names below the last of a path to ask for.
func (c *Client) toBringBelow(dir ids.Object, path []string) uint32 {
	if !c.far(dir.Slice()) {
		return 0
	}
	return c.below.Bytes(dir, path[len(path)-1])
}
