package alone

import (
	"cartwheel.dev/clients/cartwheel/timeouts"
	"context"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/stream"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// SetAttr changes mode, owner or times of an object that nobody else can have seen,
// and returns its attributes. The size, and what somebody else may do to it, are its
// active's.
func (a *Actor) SetAttr(ctx context.Context, o ids.Object, set *pb.SetAttr, who mount.Caller, level uint32) (*pb.Attr, bool) {
	if timeouts.Eventual(ctx) {
		return nil, false // others at this side of a cut are to see it
	}
	us := a.opt.Who()
	now, _, ok := a.opt.Names.Attr(o)
	if us == nil || !ok || set.Size != nil || set.CtimeNs != nil || now.Nlink == 0 {
		return nil, false
	}
	p := calls.Principal(who)
	if !us.Trusted {
		p.Uid = us.Uid
	}
	wall := a.opt.Wall().UnixNano()
	op := &stream.Op{Op: &pb.Operation{TimeNs: wall, Op: &pb.Operation_SetAttr{SetAttr: set}}, Principal: p, Level: level,
		Name: o.String(), Dir: ids.Object(now.Parent), Touches: []ids.Object{ids.Object(now.Parent), o}, Files: a.files(o)}
	if now.Parent == 0 || op.Dir.Slice() != o.Slice() {
		return nil, false
	}
	var changed *pb.Attr
	done := a.Append(ctx, op, func() bool {
		parent, ok := a.opt.Names.SetAhead(o, func(attr *pb.Attr) bool {
			if ids.Object(attr.Parent) != op.Dir || !owns(attr, set, p) {
				return false
			}
			Apply(attr, set, wall)
			changed = proto.CloneOf(attr)
			return true
		})
		return ok && parent == op.Dir
	})
	return changed, done
}

// Change is SetAttr for a file that its active has not heard of: it hears of both
// together. written is the time of the last write that no active has, 0: none.
func (a *Actor) Change(f *pending.File, set *pb.SetAttr, who mount.Caller, written int64) (*pb.Attr, bool) {
	us := a.opt.Who()
	if us == nil || set.Size != nil || set.CtimeNs != nil {
		return nil, false
	}
	p := calls.Principal(who)
	if !us.Trusted {
		p.Uid = us.Uid
	}
	wall := a.opt.Wall().UnixNano()
	var changed *pb.Attr
	done := p.Uid == f.Principal.Uid && a.opt.Files.Change(f, set, wall, func() bool {
		return a.opt.Names.SetNew(f.Object, func(attr *pb.Attr) bool {
			if !owns(attr, set, p) {
				return false
			}
			attr.MtimeNs = max(attr.MtimeNs, written)
			Apply(attr, set, wall)
			changed = proto.CloneOf(attr)
			return true
		})
	})
	return changed, done
}

// owns reports whether a user may surely change what a request asks for, and the
// active changes nothing else beside.
func owns(a *pb.Attr, set *pb.SetAttr, p *pb.Principal) bool {
	const special = mount.SetUID | mount.SetGID
	if a.HasAcl || a.Mode&special != 0 || set.GetMode()&special != 0 || p.Uid != 0 && p.Uid != a.Uid {
		return false
	}
	keeps := (set.Uid == nil || *set.Uid == a.Uid) && (set.Gid == nil || *set.Gid == a.Gid)
	return p.Uid == 0 || keeps
}

// ChangesNothing reports whether a request sets the owner or the mode of a regular
// file to what they are and nothing else, by a user who surely may. us is what the
// nodes take this client for; nil: not known yet.
func ChangesNothing(a *pb.Attr, set *pb.SetAttr, us *pb.HelloResponse, who mount.Caller) bool {
	if us == nil || a.Mode&mount.TypeMask != mount.TypeRegular || set.Mode == nil && set.Uid == nil && set.Gid == nil {
		return false
	}
	if set.Size != nil || set.CtimeNs != nil || set.AtimeNow || set.AtimeNs != nil || set.MtimeNow || set.MtimeNs != nil {
		return false
	}
	p := calls.Principal(who)
	if !us.Trusted {
		p.Uid = us.Uid
	}
	same := func(to *uint32, is uint32) bool { return to == nil || *to == is }
	return same(set.Mode, a.Mode&^mount.TypeMask) && same(set.Uid, a.Uid) && same(set.Gid, a.Gid) && owns(a, set, p)
}

// Apply changes attributes as the active will, at a time in Unix nanoseconds.
func Apply(a *pb.Attr, set *pb.SetAttr, now int64) {
	if set.Uid != nil {
		a.Uid = *set.Uid
	}
	if set.Gid != nil {
		a.Gid = *set.Gid
	}
	if set.Mode != nil {
		a.Mode = a.Mode&mount.TypeMask | *set.Mode&0o7777
	}
	switch {
	case set.AtimeNow:
		a.AtimeNs = now
	case set.AtimeNs != nil:
		a.AtimeNs = *set.AtimeNs
	}
	switch {
	case set.MtimeNow:
		a.MtimeNs = now
	case set.MtimeNs != nil:
		a.MtimeNs = *set.MtimeNs
	}
	a.CtimeNs = now
}
