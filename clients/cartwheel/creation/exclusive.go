package creation

import (
	"slices"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// exclusive makes a file here, if its directory is exclusively this client's, the
// name is known to be free, and nothing about the file is for its active to decide.
func (k *Maker) exclusive(m *Request) (Made, bool) {
	const special = mount.SetUID | mount.SetGID
	if _, ok := k.opt.Names.Alone(m.Dir, m.Name); !ok || keeps(m.Cues) || m.Create.Mode&special != 0 {
		return Made{}, false
	}
	now := k.opt.Clock()
	dir, _, ok := k.opt.Names.Attr(m.Dir)
	if !ok || dir.HasAcl || dir.Nlink == 0 || k.opt.Deferred.IsSober(now) || !k.opt.Destination.IsHere(dir) {
		return Made{}, false
	}
	p, ok := owner(k.opt.Cluster.Who(), dir, m.Who)
	if !ok {
		return Made{}, false
	}
	o, ok := k.opt.Deferred.ID(m.Dir.Slice())
	if !ok {
		return Made{}, false
	}
	wall := k.opt.Wall().UnixNano()
	f := &pending.File{Object: o, Dir: m.Dir, Name: m.Name, Principal: p, Level: m.level(), Since: now, Create: &pb.Create{
		Dir: uint64(m.Dir), Name: []byte(m.Name), Mode: m.Create.Mode, Umask: m.Who.Umask, Exclusive: true, Open: true,
		Object: uint64(o), MadeNs: wall,
	}}
	a := &pb.Attr{
		Object: uint64(o), Mode: m.Create.Mode &^ (m.Who.Umask & 0o777), Uid: p.Uid, Gid: p.Gid, Nlink: 1, Parent: uint64(m.Dir),
		AtimeNs: wall, MtimeNs: wall, CtimeNs: wall, BtimeNs: wall, Cues: dir.Cues,
	}
	if dir.Mode&mount.SetGID != 0 {
		a.Gid = dir.Gid
	}
	if !k.journal(f) {
		return Made{}, false
	}
	if !k.opt.Deferred.Add(f, func() bool { return k.opt.Names.Make(m.Dir, m.Name, a) }) {
		k.opt.Engine().Told(o, f.Journal, 0)
		return Made{}, false
	}
	k.opt.Made(m.Dir, m.Cues, m.Name)
	return Made{Attr: a}, true
}

// keeps reports whether a file would keep a cue that is in force. Of the others,
// how many acknowledgements are waited for goes along when the file is published.
func keeps(s cue.Set) bool {
	return slices.ContainsFunc(s.All(), func(c cue.Cue) bool { return c.Name.Persistent() })
}

// journal keeps a new file in the write journal, if there is one.
func (k *Maker) journal(f *pending.File) bool {
	if !k.opt.Engine().Journals() {
		return true
	}
	encoded, err := proto.Marshal(&pb.OperateRequest{Principal: f.Principal, Operation: &pb.Operation{Op: &pb.Operation_Create{Create: f.Create}}})
	if err == nil {
		f.Journal, err = k.opt.Engine().Made(f.Object, encoded)
	}
	if err != nil {
		k.opt.Logger.Warn("the write journal does not take a new file", logattr.Err(err))
	}
	return err == nil
}

// owner is the user to whom a file made here will belong, as its active will say;
// false where that is not sure, or the caller may not make it. us is what the nodes
// take this client for.
func owner(us *pb.HelloResponse, dir *pb.Attr, who mount.Caller) (*pb.Principal, bool) {
	const want = mount.AccessWrite | mount.AccessExecute
	if us == nil {
		return nil, false
	}
	if !us.Trusted {
		p := &pb.Principal{Uid: us.Uid, Groups: us.Gids}
		if len(us.Gids) > 0 {
			p.Gid = us.Gids[0]
		}
		return p, permits(dir, p, want)
	}
	p := calls.Principal(who)
	if !permits(dir, p, want) {
		p = calls.WithGroups(who)
	}
	return p, permits(dir, p, want)
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
