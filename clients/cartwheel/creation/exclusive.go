package creation

import (
	"context"
	"slices"

	"cartwheel.dev/clients/cartwheel/alone"
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
	if k.opt.Engine().Journals() && k.opt.Stream.Makes(m.Dir) {
		return Made{}, false // after a crash the file must find its directory
	}
	now := k.opt.Clock()
	dir, _, ok := k.opt.Names.Attr(m.Dir)
	if !ok || dir.HasAcl || dir.Nlink == 0 || k.opt.Deferred.IsSober(now) || !k.opt.Destination.IsHere(dir) {
		return Made{}, false
	}
	p, ok := alone.Owner(k.opt.Cluster.Who(), dir, m.Who)
	if !ok {
		return Made{}, false
	}
	o, ok := k.opt.Deferred.ID(m.Dir.Slice())
	if !ok {
		return Made{}, false
	}
	wall := k.opt.Wall().UnixNano()
	f := &pending.File{Object: o, Dir: m.Dir, Name: m.Name, Principal: p, Level: m.level(), Lazy: m.Cues.Only(m.Call).Lazy(), Since: now, Create: &pb.Create{
		Dir: uint64(m.Dir), Name: []byte(m.Name), Mode: m.Create.Mode, Umask: m.Who.Umask, Exclusive: true, Open: true,
		Object: uint64(o), MadeNs: wall,
	}}
	if before := k.opt.Stream.Newest(m.Dir.Slice()); before != nil {
		f.Behind = func(ctx context.Context) error { return k.opt.Stream.Await(ctx, before) }
	}
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

// other makes a directory or a symbolic link here, under the same conditions.
func (k *Maker) other(ctx context.Context, m *Request) (Made, bool) {
	dir, _, ok := k.opt.Names.Attr(m.Dir)
	if !ok || keeps(m.Cues) || !k.opt.Destination.IsHere(dir) {
		return Made{}, false
	}
	a, ok := k.opt.Alone.Make(ctx, alone.Making{Dir: m.Dir, Name: m.Name, Who: m.Who, Create: m.Create, Level: m.level(), ID: k.opt.Deferred.ID})
	if !ok {
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
