package cartwheel

import (
	"context"
	"slices"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

const (
	blockSize     = 512
	directorySize = 4096
)

// stat turns attributes into what stat shows, with what is written and not yet
// committed. Those of dirty files change by themselves, so that the kernel may
// not keep them.
func (c *Client) stat(a *pb.Attr) (out mount.Attr, dirty bool) {
	out = mount.Attr{
		Ino: a.Object, Size: a.Size, Blocks: (a.Stored + blockSize - 1) / blockSize,
		Atime: a.AtimeNs, Mtime: a.MtimeNs, Ctime: a.CtimeNs, Btime: a.BtimeNs,
		Mode: a.Mode, Nlink: a.Nlink, UID: a.Uid, GID: a.Gid, Rdev: a.Rdev,
	}
	switch a.Mode & mount.TypeMask {
	case mount.TypeDir:
		out.Size = directorySize
	case mount.TypeRegular:
		over := pb.Attr{Object: a.Object, Size: a.Size, Version: a.Version, MtimeNs: a.MtimeNs, CtimeNs: a.CtimeNs}
		if dirty = c.engine.Overlay(&over); dirty {
			out.Size, out.Mtime, out.Ctime = over.Size, over.MtimeNs, over.CtimeNs
		}
	}
	return out, dirty
}

// shown is stat with how long the kernel may keep it.
func (c *Client) shown(a *pb.Attr, left time.Duration) (mount.Attr, time.Duration) {
	out, dirty := c.stat(a)
	if dirty {
		left = 0
	}
	return out, left
}

// reply answers attributes with how long the kernel may keep them. When a
// directory's lease is revoked, the client tells the kernel of the files whose
// names it may believe, and of no others. The kernel may therefore keep attributes
// that only the directory's lease covers no longer than it may believe the name.
func (c *Client) reply(a *pb.Attr) mount.AttrReply {
	left, own := c.names.Good(a)
	if !own && left > 0 {
		left = min(left, c.nodes.CachedFor(ids.Object(a.Object), c.opt.BootTime()))
	}
	var r mount.AttrReply
	r.Attr, r.Valid = c.shown(a, left)
	return r
}

// GetAttr implements mount.Attributes.
func (c *Client) GetAttr(ctx context.Context, _ mount.Caller, id mount.Inode, _ mount.Handle) (mount.AttrReply, error) {
	o, _, ok := c.nodes.Find(id)
	if !ok {
		return mount.AttrReply{}, staleNode
	}
	if a, _, ok := c.names.Attr(o); ok {
		return c.reply(a), nil
	}
	a, r, err := c.fetchReply(ctx, o)
	if fault.Is(err, fault.Stale) {
		if last, ok := c.nodes.RemovedAttr(id); ok {
			return mount.AttrReply{Attr: last}, nil
		}
	}
	if err != nil {
		return mount.AttrReply{}, err
	}
	if a.Mode&mount.TypeMask == mount.TypeDir {
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
		if r := c.reply(a); !c.names.Superseded(a) || try == lookTries {
			return a, r, nil
		}
	}
}

// staleNode answers for nodes that nobody knows.
var staleNode = fault.E(fault.Stale, "cartwheel", "", "the node is not known")

// SetAttr implements mount.Attributes. What is dirty is committed first, so
// that a time that is set stands, and a size is cut from what was written.
func (c *Client) SetAttr(ctx context.Context, who mount.Caller, id mount.Inode, change mount.SetAttr) (mount.AttrReply, error) {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.AttrReply{}, staleNode
	}
	if cues.Empty() {
		cues = c.nodes.HintedCues(o, who.PID, c.opt.BootTime())
	}
	if change.Valid&mount.SetSize != 0 {
		c.nodes.AwaitFill(inodes.Plain(o))
	}
	if err := c.flushFirst(ctx, o); err != nil {
		return mount.AttrReply{}, err
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	set := setAttr(o, &change)
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
	a, err := c.calls.Change(ctx, o, calls.Operation{Principal: p, Level: cues.Only(cue.Chmod).Sync(), Op: &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: set}}})
	if err != nil {
		return mount.AttrReply{}, err
	}
	if set.Size != nil {
		c.engine.SetVersion(a)
	}
	return c.reply(a), nil
}

// doubt forgets objects of which an operation's outcome is not known.
func (c *Client) doubt(objects ...ids.Object) {
	for _, o := range objects {
		if o == 0 {
			continue
		}
		c.names.Forget(o)
		c.engine.Invalidate(o)
		n := c.nodes.ForgetObject(o, c.opt.BootTime())
		c.kernel.Tell(&n, false, nil)
	}
}

// Access implements mount.Attributes.
func (c *Client) Access(ctx context.Context, who mount.Caller, id mount.Inode, mask uint32) error {
	o, _, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	a, err := c.calls.Attr(ctx, o)
	if err != nil {
		return err
	}
	if allowed(a, who, mask) {
		return nil
	}
	return fault.E(fault.Permission, "cartwheel.Access", o.String(), "")
}

// allowed goes by nothing but the mode: where it is asked for, there are no ACLs.
func allowed(a *pb.Attr, who mount.Caller, mask uint32) bool {
	if who.UID == 0 {
		return mask&mount.AccessExecute == 0 || a.Mode&mount.TypeMask == mount.TypeDir || a.Mode&0o111 != 0
	}
	mode := a.Mode
	switch {
	case who.UID == a.Uid:
		mode >>= 6
	case who.GID == a.Gid || slices.Contains(mount.Groups(who), a.Gid):
		mode >>= 3
	}
	return mode&mask == mask
}

// StatFS implements mount.FileSystem.
func (c *Client) StatFS(ctx context.Context, _ mount.Caller, _ mount.Inode) (mount.Space, error) {
	return c.space.Get(ctx)
}
