package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// GetAttr implements mount.Attributes.
func (c *Client) GetAttr(ctx context.Context, who mount.Caller, id mount.Inode, _ mount.Handle) (mount.AttrReply, error) {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.AttrReply{}, staleNode
	}
	if a, _, ok := c.names.Attr(o); ok {
		return c.replies.Attr(a), nil
	}
	terms := c.nodes.CuesOf(o, cues, who.PID, c.opt.Clock()).Terms()
	ctx, done := timeouts.Within(ctx, terms)
	defer done()
	var a *pb.Attr
	var r mount.AttrReply
	last, err := c.remembered.Over(o).Of(terms).Take(ctx, func(ctx context.Context) (err error) {
		a, r, err = c.fetchReply(ctx, o)
		return err
	})
	if last != nil {
		return c.replies.Attr(last), nil
	}
	if fault.Is(err, fault.Stale) {
		if last, ok := c.nodes.RemovedAttr(id); ok {
			return mount.AttrReply{Attr: last}, nil
		}
	}
	if err != nil {
		return mount.AttrReply{}, err
	}
	if a.Mode&mount.TypeMask == mount.TypeDir {
		c.remembered.NoteAttr(a)
		c.nodes.RememberAttr(id, &r.Attr)
	}
	return r, nil
}

// fetchReply asks for attributes and answers them. A write that was dirty when
// they were asked for may be committed by the time that they are here: then they
// lack it, and nothing dirty shows it any more, and they are asked for again.
func (c *Client) fetchReply(ctx context.Context, o ids.Object) (*pb.Attr, mount.AttrReply, error) {
	for try := 1; ; try++ {
		a, err := c.calls.Attr(ctx, o)
		if err != nil {
			return nil, mount.AttrReply{}, err
		}
		if r := c.replies.Attr(a); !c.names.Superseded(a) || try == lookTries || timeouts.Eventual(ctx) {
			return a, r, nil
		}
	}
}

// staleNode answers for inodes that the table does not know.
var staleNode = fault.E(fault.Stale, "cartwheel", "", "the node is not known")

// SetAttr implements mount.Attributes. What is dirty is committed first, so
// that a time that is set stands, and a size is cut from what was written. The
// active of a new file hears of all that at once. Of a change that changes nothing
// of a file that is written here, it hears with the next commit.
func (c *Client) SetAttr(ctx context.Context, who mount.Caller, id mount.Inode, change mount.SetAttr) (mount.AttrReply, error) {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.AttrReply{}, staleNode
	}
	cues = c.nodes.CuesOf(o, cues, who.PID, c.opt.Clock())
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	if change.Valid&mount.SetSize != 0 {
		c.nodes.AwaitFill(inodes.Plain(o))
	}
	set := setAttr(o, &change)
	if f := c.deferred.Of(o); f != nil {
		dirty := pb.Attr{Object: uint64(o)}
		c.engine.Overlay(&dirty)
		if a, ok := c.alone.Change(f, set, who, dirty.MtimeNs); ok {
			return c.replies.Attr(a), nil
		}
	}
	if a, ok := c.handles.keeper.Owe(o, set, who); ok {
		return c.replies.Attr(a), nil
	}
	if r, ok := cutLater(ctx, c, who, o, set); ok {
		return r, nil
	}
	if err := c.opens.Flush(ctx, o); err != nil {
		return mount.AttrReply{}, err
	}
	if a, ok := c.alone.SetAttr(ctx, o, set, who, cues.Only(cue.Chmod).Sync()); ok {
		return c.replies.Attr(a), nil
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	if change.Valid&(mount.SetMode|mount.SetOwner|mount.SetGroup) != 0 {
		a, err := c.setAttr(out, calls.WithGroups(who), o, set, cues)
		return a, err
	}
	var r mount.AttrReply
	err := calls.AsCaller(who, func(p *pb.Principal) (err error) {
		r, err = c.setAttr(out, p, o, set, cues)
		return err
	})
	return r, err
}

// setAttr builds the operation's message.
func setAttr(o ids.Object, change *mount.SetAttr) *pb.SetAttr {
	s := &pb.SetAttr{Object: uint64(o), ByHandle: change.Handle != 0}
	has := func(bit uint32) bool { return change.Valid&bit != 0 }
	if has(mount.SetMode) {
		s.Mode = &change.Mode
	}
	if has(mount.SetOwner) {
		s.Uid = &change.UID
	}
	if has(mount.SetGroup) {
		s.Gid = &change.GID
	}
	if has(mount.SetSize) {
		s.Size = &change.Size
	}
	switch {
	case has(mount.SetAtimeNow):
		s.AtimeNow = true
	case has(mount.SetAtime):
		s.AtimeNs = &change.Atime
	}
	switch {
	case has(mount.SetMtimeNow):
		s.MtimeNow = true
	case has(mount.SetMtime):
		s.MtimeNs = &change.Mtime
	}
	return s
}

func (c *Client) setAttr(ctx context.Context, p *pb.Principal, o ids.Object, set *pb.SetAttr, cues cue.Set) (mount.AttrReply, error) {
	debt, _ := c.handles.owed.Of(o)
	a, err := c.calls.Change(ctx, o, calls.Operation{Principal: p, Level: cues.Only(cue.Chmod).Sync(), Op: &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: set}}})
	if err != nil {
		return mount.AttrReply{}, err
	}
	c.handles.owed.Paid(o, debt)
	if set.Size != nil {
		c.engine.SetVersion(a)
	}
	return c.replies.Attr(a), nil
}

// Access implements mount.Attributes.
func (c *Client) Access(ctx context.Context, who mount.Caller, id mount.Inode, mask uint32) error {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	terms := c.nodes.CuesOf(o, cues, who.PID, c.opt.Clock()).Terms()
	ctx, done := timeouts.Within(ctx, terms)
	defer done()
	var a *pb.Attr
	last, err := c.remembered.Over(o).Of(terms).Take(ctx, func(ctx context.Context) (err error) {
		a, err = c.calls.Attr(ctx, o)
		return err
	})
	if err != nil {
		return err
	}
	if last != nil {
		a = last
	}
	if allowed(c, a, who, mask) {
		return nil
	}
	return fault.E(fault.Permission, "cartwheel.Access", o.String(), "")
}

// allowed goes by the object's mode and ACL, as the nodes do. The groups are those
// of the caller's thread; the user of this client's key also has those that the
// cluster gives it.
func allowed(c *Client, a *pb.Attr, who mount.Caller, mask uint32) bool {
	p := tree.Principal{UID: who.UID, GID: who.GID, Groups: mount.Groups(who)}
	if own := c.cluster.Who(); own != nil && !own.Trusted && own.Uid == who.UID {
		p.Groups = append(p.Groups, own.Gids...)
	}
	return tree.Allowed(a, &p, mask)
}

// StatFS implements mount.FileSystem.
func (c *Client) StatFS(ctx context.Context, who mount.Caller, id mount.Inode) (mount.Space, error) {
	if o, cues, ok := c.nodes.Find(id); ok {
		bounded, done := timeouts.Within(ctx, c.nodes.CuesOf(o, cues, who.PID, c.opt.Clock()).Terms())
		defer done()
		ctx = bounded
	}
	return c.space.Get(ctx)
}
