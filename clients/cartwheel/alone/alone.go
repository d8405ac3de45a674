// Package alone does operations on names and attributes by itself, where their
// directories are exclusively this client's and nothing about them is for an active
// to decide: what is made, removed, renamed or changed shows here at once, and
// follows to the active in the stream (docs/design.md, 6). It does none where it is
// not sure that the active will do it: then its caller asks the active. It makes no
// regular files; package creation does.
package alone

import (
	"slices"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/stream"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Options set up an Actor. None may be missing.
type Options struct {
	Names  *names.Cache
	Stream *stream.Stream
	// Who is what the nodes take this client for; nil: not known yet.
	Who   func() *pb.HelloResponse
	Files *pending.Table // that their actives have not heard of
	Wall  func() time.Time
}

// Actor does operations. It has no state but the stream, and is safe for use by many
// goroutines. Its methods may wait for room in the stream.
type Actor struct {
	*stream.Stream // of what was done
	opt            Options
}

// New returns an Actor.
func New(o Options) *Actor { return &Actor{Stream: o.Stream, opt: o} }

// wants is what changes of a directory's names need.
const wants = mount.AccessWrite | mount.AccessExecute

// directory returns the attributes of a directory whose mode alone says who may
// change its names.
func (a *Actor) directory(dir ids.Object) (*pb.Attr, bool) {
	d, _, ok := a.opt.Names.Attr(dir)
	return d, ok && !d.HasAcl && d.Nlink > 0
}

// files lists the objects that their active has not heard of.
func (a *Actor) files(list ...ids.Object) (out []*pending.File) {
	for _, o := range list {
		if f := a.opt.Files.Of(o); f != nil {
			out = append(out, f)
		}
	}
	return out
}

// Owner is the user as whom a caller makes something in a directory, as its active
// will say; false where that is not sure, or the caller may not. us is what the
// nodes take this client for.
func Owner(us *pb.HelloResponse, dir *pb.Attr, who mount.Caller) (*pb.Principal, bool) {
	if us == nil {
		return nil, false
	}
	if !us.Trusted {
		p := &pb.Principal{Uid: us.Uid, Groups: us.Gids}
		if len(us.Gids) > 0 {
			p.Gid = us.Gids[0]
		}
		return p, permits(dir, p, wants)
	}
	p := calls.Principal(who)
	if !permits(dir, p, wants) {
		p = calls.WithGroups(who)
	}
	return p, permits(dir, p, wants)
}

// permits goes by nothing but the mode, for directories without ACLs.
func permits(a *pb.Attr, p *pb.Principal, mask uint32) bool {
	mode := a.Mode
	switch {
	case p.Uid == 0:
		return true
	case p.Uid == a.Uid:
		mode >>= 6
	case p.Gid == a.Gid || slices.Contains(p.Groups, a.Gid):
		mode >>= 3
	}
	return mode&mask == mask
}

// sticky is the mode bit of a directory in which only owners remove names.
const sticky = 0o1000

// mayRemove reports whether a user who may change a directory's names may remove
// one of an object, of which attributes are known or nil.
func mayRemove(dir *pb.Attr, p *pb.Principal, o *pb.Attr) bool {
	return dir.Mode&sticky == 0 || p.Uid == 0 || p.Uid == dir.Uid || o != nil && p.Uid == o.Uid
}
