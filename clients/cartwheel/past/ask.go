package past

import (
	"context"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
)

// pageNames bounds the names of one page of a listing.
const pageNames = 2048

// asOf makes a read's header one of the past: it wants no leases.
func asOf(h *pb.ReadHeader, n *node, ticket []byte) *pb.ReadHeader {
	h.AsOf, h.Session, h.Eventual, h.Ticket = uint64(n.at), 0, false, ticket
	return h
}

// ticketOf is the ticket to show for a node: its own, or the one that the present has.
func (f *FileSystem) ticketOf(n *node) []byte {
	if _, ticket := n.known(); ticket != nil {
		return ticket
	}
	return f.opt.Tickets.Of(n.object).Reached
}

// fetch asks for a node's attributes and keeps them.
func (f *FileSystem) fetch(ctx context.Context, n *node) (*pb.Attr, error) {
	a, err := f.ask(ctx, n, false)
	if err != nil {
		return nil, err
	}
	return f.learn(n, a), nil
}

// ask asks for a node's attributes, and for its extended ones where they are wanted.
func (f *FileSystem) ask(ctx context.Context, n *node, xattrs bool) (*pb.Attr, error) {
	var resp *pb.GetAttrResponse
	_, err := f.opt.Ask.Ask(ctx, n.object.Slice(), nil, method.GetAttr, func(h *pb.ReadHeader) (proto.Message, calls.Answer) {
		resp = &pb.GetAttrResponse{}
		return &pb.GetAttrRequest{Header: asOf(h, n, f.ticketOf(n)), Object: uint64(n.object), Content: true, Xattrs: xattrs}, resp
	})
	if err == nil {
		err = echoes(resp, n)
	}
	if err != nil {
		return nil, err
	}
	if resp.Attr == nil {
		return nil, fault.E(fault.Corrupt, "past.ask", n.object.String(), "the answer has no attributes")
	}
	return resp.Attr, nil
}

// named returns the time of a snapshot, as the active of a directory's slice knows it, and the
// directory that it is of; 0: the whole tree. NotFound: there is none of this name.
func (f *FileSystem) named(ctx context.Context, name string, dir ids.Object) (hlc.Time, ids.Object, error) {
	var resp *pb.GetAttrResponse
	_, err := f.opt.Ask.Ask(ctx, dir.Slice(), nil, method.GetAttr, func(h *pb.ReadHeader) (proto.Message, calls.Answer) {
		resp = &pb.GetAttrResponse{}
		h.AsOfName, h.Session, h.Eventual, h.Ticket = name, 0, false, f.opt.Tickets.Of(dir).Reached
		return &pb.GetAttrRequest{Header: h, Object: uint64(dir)}, resp
	})
	switch {
	case fault.Is(err, fault.Stale):
		return 0, 0, fault.E(fault.NotFound, "past.named", name, "the directory did not exist then")
	case err == nil && resp.AsOf == 0:
		return 0, 0, fault.E(fault.NotSupported, "past.named", name, "the node knows no snapshots by name: upgrade it")
	}
	return hlc.Time(resp.GetAsOf()), ids.Object(resp.GetAsOfRoot()), err
}

// learn keeps what was answered of a node, small content apart, and returns it as it is
// kept.
func (f *FileSystem) learn(n *node, a *pb.Attr) *pb.Attr {
	f.opt.Tickets.NotePast(a)
	if c := a.Content; c != nil && len(c.Root) == 0 && !c.Withheld && a.Size > 0 {
		f.blocks.put(blockKey{object: n.object, at: n.at}, c.Inline)
		c.Inline = nil
	}
	n.learn(a)
	return a
}

// attr returns a node's attributes.
func (f *FileSystem) attr(ctx context.Context, n *node) (*pb.Attr, error) {
	if a, _ := n.known(); a != nil {
		return a, nil
	}
	return f.fetch(ctx, n)
}

// found is what a name meant: nothing where object is 0.
type found struct {
	object ids.Object
	attr   *pb.Attr // nil where the object lives in another slice
	ticket []byte
}

// find asks what a name of a directory meant.
func (f *FileSystem) find(ctx context.Context, who mount.Caller, dir *node, name string) (found, error) {
	const op fault.Op = "past.find"
	var resp *pb.ResolveResponse
	err := calls.AsCaller(who, func(p *pb.Principal) error {
		_, err := f.opt.Ask.Ask(ctx, dir.object.Slice(), p, method.Resolve, func(h *pb.ReadHeader) (proto.Message, calls.Answer) {
			resp = &pb.ResolveResponse{}
			return &pb.ResolveRequest{Header: asOf(h, dir, f.ticketOf(dir)), Dir: uint64(dir.object), Names: [][]byte{[]byte(name)}, Content: true}, resp
		})
		return err
	})
	if err == nil {
		err = echoes(resp, dir)
	}
	switch {
	case err != nil:
		return found{}, err
	case len(resp.Steps) == 0:
		return found{}, fault.E(fault.Corrupt, op, name, "the answer has no steps")
	}
	s := resp.Steps[0]
	if k := fault.Kind(s.Kind); k != fault.None && k != fault.NotFound {
		return found{}, fault.E(k, op, name, "")
	}
	return found{ids.Object(s.Object), s.Attr, s.Ticket}, nil
}

// list asks for the names of a directory behind one of them.
func (f *FileSystem) list(ctx context.Context, who mount.Caller, dir *node, after string) (resp *pb.ListResponse, err error) {
	_, err = f.opt.Ask.List(ctx, who, dir.object, func(h *pb.ReadHeader) (*pb.ListRequest, *pb.ListResponse) {
		resp = &pb.ListResponse{}
		return &pb.ListRequest{Header: asOf(h, dir, f.ticketOf(dir)), Dir: uint64(dir.object), After: []byte(after), Limit: pageNames}, resp
	})
	if err == nil {
		err = echoes(resp, dir)
	}
	return resp, err
}

// echoes refuses an answer that is not of the node's time: nodes of earlier programs
// answer with the present.
func echoes(answer interface{ GetAsOf() uint64 }, n *node) error {
	if answer.GetAsOf() == uint64(n.at) {
		return nil
	}
	return fault.E(fault.NotSupported, "past.echoes", n.object.String(), "the node knows the present alone: upgrade it")
}
