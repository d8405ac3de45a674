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

// List returns a page of a directory, with the attributes of the children that
// live in the same slice.
func (s *Server) List(ctx context.Context, who Asker, req *pb.ListRequest) (*pb.ListResponse, error) {
	h, o := header(req.Header), ids.Object(req.Dir)
	limit := int(req.Limit)
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	if err := s.Reached(ctx, &who, o, h.Ticket); err != nil {
		return nil, err
	}
	out := &pb.ListResponse{}
	err := again(ctx, func() error {
		p, refused := s.admit(o.Slice(), &who, h.Epoch)
		if refused != nil {
			out = &pb.ListResponse{Refusal: refused}
			return nil
		}
		if s.isCopy(&who, p) {
			var err error
			out, err = s.listCopy(ctx, &who, p, req, limit)
			return err
		}
		if who.AsOf != 0 {
			out = &pb.ListResponse{AsOf: uint64(who.AsOf)}
			return s.asOf(ctx, &who, p.Slice, func() error { return s.page(out, who, o, req.After, limit, func(ids.Object) {}) })
		}
		end, err := s.Leases.Shared(ctx, who.Session, o)
		if err != nil {
			return err
		}
		defer end()
		page := &pb.ListResponse{Grants: s.grant(nil, who, p, o, pb.Grant_NAMES)}
		if err := s.page(page, who, o, req.After, limit, func(child ids.Object) {
			page.Grants = s.grant(page.Grants, who, p, child, pb.Grant_NAMES)
		}); err != nil {
			return err
		}
		if out = page; !s.still(o.Slice()) {
			out = &pb.ListResponse{Refusal: s.refusal(o.Slice(), p, fault.NotActive, "the lease has lapsed")}
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

// maxPage bounds the entries of one answer.
const maxPage = 4096

// pageTries is how often a page is read anew because a name in it came to mean
// something else meanwhile; after that such names are looked up one by one, so
// that a busy directory can be listed too.
const pageTries = 4

// page reads one page, once no operation over several slices is about to
// change the directory's names.
func (s *Server) page(out *pb.ListResponse, who Asker, dir ids.Object, after []byte, limit int, lease func(ids.Object)) error {
	v := s.seen(&who, s.Published(dir.Slice()), dir.Slice())
	if _, err := tree.Directory(v, dir, &who.Principal, 4); err != nil {
		return err
	}
	if held, err := tree.NamesLocked(v, dir); err != nil {
		return err
	} else if held != 0 {
		return fault.E(fault.Busy, "reading.page", dir.String(), "an operation over several slices is under way")
	}
	for try := 1; ; try++ {
		names, more, err := tree.List(v, dir, after, limit)
		if err != nil {
			return err
		}
		out.More = more
		if try == 1 {
			leaseChildren(names, dir, lease)
		}
		moved, err := s.entries(out, v, dir, names, try == pageTries)
		if err != nil {
			return err
		}
		if !moved {
			s.stampEntries(&who, out.Entries)
			return nil
		}
	}
}

// leaseChildren gets leases on the directories among names, before they are
// read: a directory's attributes are covered by its own.
func leaseChildren(names []tree.NamedEntry, dir ids.Object, lease func(ids.Object)) {
	for i := range names {
		if n := &names[i]; n.Type == tree.TypeDir && n.Object.Slice() == dir.Slice() {
			lease(n.Object)
		}
	}
}

// entries fills a page with names and their attributes. It stops where an
// object was removed since the names were read, which says that its name is
// gone or means another by now; with settle it asks what it means.
func (s *Server) entries(out *pb.ListResponse, v tree.View, dir ids.Object, names []tree.NamedEntry, settle bool) (moved bool, err error) {
	out.Entries = make([]*pb.Entry, 0, len(names))
	for i := range names {
		n := &names[i]
		e, err := entry(v, dir, n)
		for settle && fault.Is(err, fault.Stale) {
			if n.Entry, err = tree.Lookup(v, dir, n.Name); err == nil {
				e, err = entry(v, dir, n)
			}
		}
		switch {
		case settle && fault.Is(err, fault.NotFound):
			continue
		case !settle && fault.Is(err, fault.Stale):
			return true, nil
		case err != nil:
			return false, err
		}
		out.Entries = append(out.Entries, e)
	}
	return false, nil
}

// stampEntries gives a user the tickets of what names mean.
func (s *Server) stampEntries(who *Asker, entries []*pb.Entry) {
	if who.Holder == nil {
		return
	}
	for _, e := range entries {
		if e.Attr == nil {
			e.Ticket = s.Name(who, ids.Object(e.Object))
		}
		s.Stamp(who, e.Attr, chunk.Address{})
	}
}

// entry is one name with the attributes of what it names, if that lives in the
// same slice.
func entry(v tree.View, dir ids.Object, n *tree.NamedEntry) (*pb.Entry, error) {
	e := &pb.Entry{Name: n.Name, Object: uint64(n.Object), Mode: n.Type}
	if n.Object.Slice() != dir.Slice() {
		return e, nil
	}
	var err error
	e.Attr, err = tree.GetAttr(v, n.Object, false, false)
	return e, err
}

// listCopy is List from a copy.
func (s *Server) listCopy(ctx context.Context, who *Asker, p *operate.Published, req *pb.ListRequest, limit int) (*pb.ListResponse, error) {
	out := &pb.ListResponse{}
	err := s.page(out, *who, ids.Object(req.Dir), req.After, limit, func(ids.Object) {})
	if err != nil {
		return nil, s.ofCopy(p, err)
	}
	out.Copy, err = s.copied(ctx, who, p)
	return out, err
}
