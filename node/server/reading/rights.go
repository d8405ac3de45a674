package reading

import (
	"context"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
)

// maxDepth bounds the directories above an object that one check walks.
const maxDepth = 1024

// setGID is the mode's bit.
const setGID = 0o2000

// userXattr begins the extended attributes that only readers of a file may see.
const userXattr = "user."

// Reached refuses a user that names an object by its ID alone: the user shows
// the ticket that a lookup gave, or has the object open, or may search every
// directory above it now. Nodes and trusted hosts need none of that.
func (s *Server) Reached(ctx context.Context, who *Asker, o ids.Object, t []byte) error {
	if s.HasReached(who, o, t) {
		return nil
	}
	return s.searchAbove(ctx, who, o)
}

// HasReached is Reached without the walk, which may ask other nodes.
func (s *Server) HasReached(who *Asker, o ids.Object, t []byte) bool {
	if who.Holder == nil || o == ids.RootObject {
		return true
	}
	rights, _, ok := s.Tickets.OpenReached(t, *who.Holder, o)
	return ok && (rights&ticket.Past == 0 || who.AsOf != 0)
}

// searchAbove walks up from an object and wants each directory searchable.
func (s *Server) searchAbove(ctx context.Context, who *Asker, o ids.Object) error {
	const op fault.Op = "reading.searchAbove"
	if s.Published(o.Slice()).Serves(s.Clock()) {
		if held, err := tree.HasOpen(s.Committed(o.Slice()), o, who.Client); err != nil || held {
			return err
		}
	}
	at, err := s.attr(ctx, who, o)
	for range maxDepth {
		if err != nil {
			return err
		}
		up := ids.Object(at.Parent)
		if ids.Object(at.Object) == ids.RootObject {
			return nil
		}
		if up == 0 || up == ids.Object(at.Object) {
			break // which directory names it is not known
		}
		if at, err = s.attr(ctx, who, up); err == nil && !tree.Allowed(at, &who.Principal, 1) {
			break
		}
	}
	return fault.E(fault.Permission, op, o.String(), "the directories above it cannot be searched")
}

// MayMake refuses a user an object for a directory of another slice to which it
// may not add names now, and any other group than its own or the directory's.
func (s *Server) MayMake(ctx context.Context, who *Asker, apart *pb.MakeObject) error {
	const op fault.Op = "reading.MayMake"
	dir := ids.Object(apart.Parent)
	if err := s.Reached(ctx, who, dir, nil); err != nil {
		return err
	}
	a, err := s.attr(ctx, who, dir)
	switch {
	case err != nil:
		return err
	case a.Mode&tree.TypeMask != tree.TypeDir || !tree.Allowed(a, &who.Principal, 2|1):
		return fault.E(fault.Permission, op, dir.String(), "the user may make no names in the directory")
	case apart.UseGid && !(a.Mode&setGID != 0 && a.Gid == apart.Gid) && !who.Principal.In(apart.Gid):
		return fault.E(fault.Permission, op, dir.String(), "the group is neither the directory's nor the user's")
	}
	return nil
}

// attr reads an object's attributes here or, where another node acts for its
// slice, there.
func (s *Server) attr(ctx context.Context, who *Asker, o ids.Object) (a *pb.Attr, err error) {
	if p := s.Published(o.Slice()); p.Serves(s.Clock()) || s.isCopy(who, p) {
		err = s.asOf(ctx, who, o.Slice(), func() (err error) {
			a, err = tree.GetAttr(s.seen(who, p, o.Slice()), o, false, false)
			return err
		})
		return a, err
	}
	return s.Elsewhere(ctx, o, who.AsOf)
}

// Stamp gives a user the tickets of an object whose attributes it is about to
// see, and takes out what it may not read. The user could read a version with
// this root before; the zero Address: none.
func (s *Server) Stamp(who *Asker, a *pb.Attr, could chunk.Address) {
	if a == nil || who.Holder == nil {
		return
	}
	a.Ticket = s.reachedTicket(who, a)
	readable := !could.IsZero() || mayRead(who, a)
	if !readable {
		a.Xattrs = withoutUser(a.Xattrs)
	}
	c := a.Content
	switch {
	case c == nil:
	case !readable:
		c.Inline, c.Sent, c.Withheld = nil, false, true
	case len(c.Root) == chunk.AddressSize:
		c.Ticket = s.Tickets.Readable(*who.Holder, ids.Object(a.Object), chunk.Address(c.Root))
	}
}

// withhold takes out what the principal that a trusted host names may not read.
func withhold(who *Asker, a *pb.Attr) {
	if !who.Named || mayRead(who, a) {
		return
	}
	if a.Xattrs = withoutUser(a.Xattrs); a.Content != nil {
		a.Content.Inline, a.Content.Sent, a.Content.Withheld = nil, false, true
	}
}

func (s *Server) reachedTicket(who *Asker, a *pb.Attr) []byte {
	if who.AsOf != 0 {
		return s.Name(who, ids.Object(a.Object))
	}
	var rights ticket.Rights
	var gid uint32
	if a.Mode&tree.TypeMask == tree.TypeDir {
		if tree.Allowed(a, &who.Principal, 2|1) {
			rights |= ticket.MayAdd
		}
		if a.Mode&setGID != 0 {
			rights, gid = rights|ticket.Inherits, a.Gid
		}
	}
	return s.Tickets.Reached(*who.Holder, ids.Object(a.Object), rights, gid)
}

// Name gives a user the ticket of an object of which only the ID is known here.
func (s *Server) Name(who *Asker, o ids.Object) []byte {
	if who.Holder == nil || o == 0 {
		return nil
	}
	var rights ticket.Rights
	if who.AsOf != 0 {
		rights = ticket.Past
	}
	return s.Tickets.Reached(*who.Holder, o, rights, 0)
}

// mayRead reports whether a user may have a file's bytes. An owner may, who
// could permit it to itself and may have the file open, and so may a user that
// may execute the file, because a kernel reads it for that.
func mayRead(who *Asker, a *pb.Attr) bool {
	p := &who.Principal
	return tree.Allowed(a, p, 4) || p.UID == a.Uid || a.Mode&tree.TypeMask == tree.TypeRegular && tree.Allowed(a, p, 1)
}

func withoutUser(list []*pb.Xattr) []*pb.Xattr {
	var out []*pb.Xattr
	for _, x := range list {
		if !strings.HasPrefix(x.Name, userXattr) {
			out = append(out, x)
		}
	}
	return out
}
