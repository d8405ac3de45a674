package calls

import (
	"context"
	"time"

	"cartwheel.dev/clients/cartwheel/receipts"
	"cartwheel.dev/clients/cartwheel/remembered"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// Wanted is what Fetch asks for beside an object's plain attributes.
type Wanted struct {
	Content, Xattrs bool
	Opening         bool // the active is to know that the object is open here
}

// Fetch reads an object's attributes from its active and learns them.
func (s *Sender) Fetch(ctx context.Context, o ids.Object, want Wanted) (*pb.Attr, error) {
	part, over := timeouts.ForOwn(ctx)
	err := s.opt.Deferred.Publish(part, o)
	over()
	if err != nil && !timeouts.Eventual(ctx) {
		return nil, err
	}
	var mark names.Mark
	var resp *pb.GetAttrResponse
	by, err := s.Ask(ctx, o.Slice(), nil, method.GetAttr, func(h *pb.ReadHeader) (proto.Message, Answer) {
		mark, resp = s.opt.Names.MarkObject(o), &pb.GetAttrResponse{}
		t := s.opt.Tickets.Of(o)
		h.Ticket = t.Reached
		req := &pb.GetAttrRequest{Header: h, Object: uint64(o), Content: want.Content, Xattrs: want.Xattrs, Opening: want.Opening}
		if root, ticket := t.Current(); ticket != nil { // an open file is read on, whatever the mode is now
			req.Root, req.Readable = root[:], ticket
		}
		return req, resp
	})
	eventual := timeouts.Eventual(ctx)
	if eventual && remembered.IsAway(err) {
		if last, ok := s.opt.Remembered.Attr(o); ok && !want.Xattrs {
			return last, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if resp.Attr == nil {
		return nil, fault.E(fault.Corrupt, "calls.Fetch", o.String(), "the answer has no attributes")
	}
	if IsCopy(resp) {
		mark.OfCopy()
	}
	s.opt.Receipts.NoteCopy(o, receipts.Copy{By: by, Serial: resp.Copy.GetSerial(), Epoch: resp.Copy.GetEpoch(), Age: time.Duration(resp.Copy.GetAgeNs()), Unmerged: resp.Copy.GetUnmerged(), Read: s.opt.Wall()})
	s.opt.Names.Learn(&mark, by, resp.Grants, func(l *names.Learner) { l.Attr(resp.Attr, want.Xattrs) })
	if eventual {
		s.opt.Remembered.NoteAttr(resp.Attr)
	}
	return resp.Attr, nil
}

// Attr returns an object's attributes, from the cache where a lease covers them.
func (s *Sender) Attr(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	if a, _, ok := s.opt.Names.Attr(o); ok {
		if timeouts.Eventual(ctx) {
			s.opt.Remembered.NoteAttr(a)
		}
		return a, nil
	}
	return s.Fetch(ctx, o, Wanted{Content: true})
}

// Whole is Attr with Content, of a regular file.
func (s *Sender) Whole(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	if a, _, ok := s.opt.Names.Attr(o); ok && (a.Content != nil || a.Size == 0 || a.Mode&mount.TypeMask != mount.TypeRegular) {
		return a, nil
	}
	return s.Fetch(ctx, o, Wanted{Content: true})
}

// Xattrs is Attr with every extended attribute.
func (s *Sender) Xattrs(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	if a, ok := s.opt.Names.Xattrs(o); ok {
		return a, nil
	}
	return s.Fetch(ctx, o, Wanted{Xattrs: true})
}

// List sends a List to the active of a directory, for a caller. build is as in Ask.
func (s *Sender) List(ctx context.Context, who mount.Caller, dir ids.Object,
	build func(*pb.ReadHeader) (*pb.ListRequest, *pb.ListResponse)) (by ids.Node, err error) {
	err = AsCaller(who, func(p *pb.Principal) (err error) {
		by, err = s.Ask(ctx, dir.Slice(), p, method.List, func(h *pb.ReadHeader) (proto.Message, Answer) { return build(h) })
		return err
	})
	return by, err
}
