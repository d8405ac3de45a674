package cartwheel

import (
	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// Pending is how many files were made here that their actives have not heard of.
func (c *Client) Pending() int { return c.deferred.Len() }

// makeAlone makes a file here, if its directory is ours alone, the name is known
// to be free, and nothing about it is for its active to decide.
func (c *Client) makeAlone(m *making) (made, bool) {
	const special = mount.SetUID | mount.SetGID
	if _, ok := c.names.Alone(m.dir, m.name); !ok || !onlySync(m.cues) || m.create.Mode&special != 0 {
		return made{}, false
	}
	now := c.opt.BootTime()
	dir, _, ok := c.names.Attr(m.dir)
	if !ok || dir.HasAcl || dir.Nlink == 0 || c.deferred.IsSober(now) || !c.destination.IsHere(dir) {
		return made{}, false
	}
	p, ok := c.maker(dir, m.who)
	if !ok {
		return made{}, false
	}
	o, ok := c.deferred.ID(m.dir.Slice())
	if !ok {
		return made{}, false
	}
	wall := c.opt.Now().UnixNano()
	f := &pending.File{Object: o, Dir: m.dir, Name: m.name, Principal: p, Level: m.level(), Since: now, Create: &pb.Create{
		Dir: uint64(m.dir), Name: []byte(m.name), Mode: m.create.Mode, Umask: m.who.Umask, Exclusive: true, Open: true,
		Object: uint64(o), MadeNs: wall,
	}}
	a := &pb.Attr{
		Object: uint64(o), Mode: m.create.Mode &^ (m.who.Umask & 0o777), Uid: p.Uid, Gid: p.Gid, Nlink: 1, Parent: uint64(m.dir),
		AtimeNs: wall, MtimeNs: wall, CtimeNs: wall, BtimeNs: wall, Cues: dir.Cues,
	}
	if dir.Mode&mount.SetGID != 0 {
		a.Gid = dir.Gid
	}
	if !c.journalMade(f) {
		return made{}, false
	}
	if !c.deferred.Add(f, func() bool { return c.names.Make(m.dir, m.name, a) }) {
		c.engine.Told(o, f.Journal, 0)
		return made{}, false
	}
	c.tellAliases(m.dir, m.cues, m.name)
	return made{attr: a}, true
}

// onlySync reports whether no cue is in force but how many acknowledgements are
// waited for, which goes along when the active is told.
func onlySync(s cue.Set) bool {
	for _, c := range s.All() {
		if c.Name != cue.SyncLevel {
			return false
		}
	}
	return true
}

// journalMade keeps a new file in the write journal, if there is one.
func (c *Client) journalMade(f *pending.File) bool {
	if !c.engine.Journals() {
		return true
	}
	encoded, err := proto.Marshal(&pb.OperateRequest{Principal: f.Principal, Operation: &pb.Operation{Op: &pb.Operation_Create{Create: f.Create}}})
	if err == nil {
		f.Journal, err = c.engine.Made(f.Object, encoded)
	}
	if err != nil {
		c.opt.Logger.Warn("the write journal does not take a new file", "err", err)
	}
	return err == nil
}

// maker is who a file made here will belong to, as its active will say; false
// where that is not sure, or the caller may not make it.
func (c *Client) maker(dir *pb.Attr, who mount.Caller) (*pb.Principal, bool) {
	const want = mount.AccessWrite | mount.AccessExecute
	w := c.cluster.Who()
	if w == nil {
		return nil, false
	}
	if !w.Trusted {
		p := &pb.Principal{Uid: w.Uid, Groups: w.Gids}
		if len(w.Gids) > 0 {
			p.Gid = w.Gids[0]
		}
		return p, permits(dir, p, want)
	}
	p := calls.Principal(who)
	if !permits(dir, p, want) {
		p = calls.WithGroups(who)
	}
	return p, permits(dir, p, want)
}

// permits goes by the mode alone, for directories without ACLs.
func permits(a *pb.Attr, p *pb.Principal, mask uint32) bool {
	mode := a.Mode
	switch {
	case p.Uid == 0:
		return true
	case p.Uid == a.Uid:
		mode >>= 6
	case p.Gid == a.Gid || contains(p.Groups, a.Gid):
		mode >>= 3
	}
	return mode&mask == mask
}
