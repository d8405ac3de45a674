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

// GetAttr reads one object's attributes.
func (s *Server) GetAttr(ctx context.Context, who Asker, req *pb.GetAttrRequest) (*pb.GetAttrResponse, error) {
	h, o := header(req.Header), ids.Object(req.Object)
	out := &pb.GetAttrResponse{}
	could, err := s.couldRead(ctx, &who, req)
	if err != nil {
		return nil, err
	}
	err = again(ctx, func() error {
		p, refused := s.admit(o.Slice(), &who, h.Epoch)
		if refused != nil {
			out = &pb.GetAttrResponse{Refusal: refused}
			return nil
		}
		if s.isCopy(&who, p) {
			out, err = s.getCopy(ctx, &who, p, req, could)
			return err
		}
		if who.AsOf != 0 {
			out, err = s.getPast(ctx, &who, p, req)
			return err
		}
		if req.Opening && !s.Leases.Opened(who.Session, o) {
			return fault.E(fault.Busy, "reading.GetAttr", o.String(), "it is about to lose its last name")
		}
		out.Grants = s.grant(nil, who, p, o, pb.Grant_FILE)
		attr, err := tree.GetAttr(s.Committed(o.Slice()), o, req.Content, req.Xattrs)
		if err == nil && attr.Mode&tree.TypeMask == tree.TypeDir {
			end, err := s.Leases.Shared(ctx, who.Session, o)
			if err != nil {
				return err
			}
			defer end()
			out.Grants = s.grant(nil, who, p, o, pb.Grant_NAMES)
			if attr, err = tree.GetAttr(s.Committed(o.Slice()), o, req.Content, req.Xattrs); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		s.Stamp(&who, attr, could)
		withhold(&who, attr)
		out.Attr = attr
		if !s.still(o.Slice()) {
			out = &pb.GetAttrResponse{Refusal: s.refusal(o.Slice(), p, fault.NotActive, "the lease has lapsed")}
			return nil
		}
		out.Copy, err = s.copied(ctx, &who, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Hlc = uint64(s.HLC.Last())
	return out, nil
}

// couldRead checks that a user reached what it asks for, and returns the root of
// the version that it shows it could read.
func (s *Server) couldRead(ctx context.Context, who *Asker, req *pb.GetAttrRequest) (could chunk.Address, err error) {
	o := ids.Object(req.Object)
	if who.Holder != nil && len(req.Root) == chunk.AddressSize && s.Tickets.OpenReadable(req.Readable, *who.Holder, o, chunk.Address(req.Root)) {
		return chunk.Address(req.Root), nil
	}
	return could, s.Reached(ctx, who, o, req.Header.GetTicket())
}

// getCopy is GetAttr from a copy.
func (s *Server) getCopy(ctx context.Context, who *Asker, p *operate.Published, req *pb.GetAttrRequest, could chunk.Address) (*pb.GetAttrResponse, error) {
	if len(req.Names) > maxNames {
		return nil, fault.Errorf(fault.TooLarge, "reading.GetAttr", "", "%d names in one request", len(req.Names))
	}
	attr, err := tree.GetAttr(s.seen(who, p, p.Slice), ids.Object(req.Object), req.Content, req.Xattrs)
	gone := fault.Is(err, fault.Stale) && req.GoneToo
	if err != nil && !gone {
		return nil, s.ofCopy(p, err)
	}
	out := &pb.GetAttrResponse{}
	if !gone {
		s.Stamp(who, attr, could)
		withhold(who, attr)
		out.Attr = attr
	}
	if out.Copy, err = s.copied(ctx, who, p); err == nil {
		out.Copy.ObjectUnmerged = s.Unmerged(ids.Object(req.Object), req.Names)
	}
	return out, err
}

// getPast is GetAttr as of the caller's time.
func (s *Server) getPast(ctx context.Context, who *Asker, p *operate.Published, req *pb.GetAttrRequest) (*pb.GetAttrResponse, error) {
	out := &pb.GetAttrResponse{AsOf: uint64(who.AsOf)}
	err := s.asOf(ctx, who, p.Slice, func() (err error) {
		out.Attr, err = tree.GetAttr(s.seen(who, p, p.Slice), ids.Object(req.Object), req.Content, req.Xattrs)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Stamp(who, out.Attr, chunk.Address{})
	withhold(who, out.Attr)
	return out, nil
}
