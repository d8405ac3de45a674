package cartwheel

import (
	"context"
	"strings"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// path returns what a person may know an open file by.
func (c *Client) path(b *inodes.Opening) string {
	if b.Name == "" {
		return c.names.Path(b.Object)
	}
	return strings.TrimSuffix(c.names.Path(b.Dir), "/") + "/" + b.Name
}

// opened makes a handle of a file whose current attributes are known.
func (c *Client) opened(ctx context.Context, who mount.Caller, b inodes.Opening, a *pb.Attr, flags mount.OpenFlags, cues cue.Set) mount.Opened {
	o := b.Object
	h := &handle{object: o, node: inodes.Plain(o), flags: flags, writer: &calls.Writer{Principal: c.writer(who, flags), Level: cues.Only(cue.Write).Sync()}}
	how := content.Open{As: h.writer, ClearSetID: who.UID != 0}
	if flags.Writes() {
		how.Name = func() string { return c.path(&b) }
	}
	if flags.Writes() && c.engine.Journals() {
		how.Who = calls.Encode(how)
	}
	h.content = c.engine.Open(o, a, how)
	var data []byte
	if b.Fresh {
		data = c.toFill(ctx, h, a)
	}
	done := c.nodes.FinishOpen(&b, a.Version, len(data) > 0)
	if !done.IsCurrent {
		c.engine.Invalidate(o) // the attributes may be older than the revocation
	}
	keep := done.KeepPages
	if done.Fill != nil {
		keep = c.fill(done.Fill, o, a.Version, data)
	} else if done.Filling != nil {
		<-done.Filling
	}
	return mount.Opened{Handle: c.handles.add(h), KeepCache: keep, DirectIO: flags&mount.OpenDirect != 0,
		NoFlush: done.NoFlush}
}

// writer is who a handle's commits act as.
func (c *Client) writer(who mount.Caller, flags mount.OpenFlags) *pb.Principal {
	if !flags.Writes() {
		return calls.Principal(who)
	}
	if w := c.cluster.Who(); w != nil && w.Trusted {
		return calls.Principal(who) // what it may write, its kernel checked
	}
	return calls.WithGroups(who)
}

// Open implements mount.Files.
func (c *Client) Open(ctx context.Context, who mount.Caller, id mount.Inode, flags mount.OpenFlags) (mount.Opened, error) {
	const op fault.Op = "cartwheel.Open"
	o, _, ok := c.nodes.Find(id)
	if !ok {
		return mount.Opened{}, staleNode
	}
	if !c.nodes.MayOpen(id, who.PID) {
		return mount.Opened{}, fault.E(fault.Stale, op, o.String(), "the name may mean something else by now")
	}
	cues := c.nodes.HintedCues(o, who.PID, c.opt.BootTime())
	out, cancel := c.limits.Remotely(ctx)
	b, err := c.nodes.BeginOpen(out, o, flags)
	cancel()
	if err != nil {
		return mount.Opened{}, err
	}
	hold := c.engine.Hold(o)
	defer hold.Release()
	var a *pb.Attr
	if flags&mount.OpenTruncate != 0 {
		c.nodes.AwaitFill(id)
		a, err = c.truncate(ctx, who, o, cues)
	}
	if err == nil {
		a, err = c.toOpen(ctx, o, hold)
	}
	if hold.Outdated(a) {
		b.Fresh = false // the kernel gets none of it
	}
	if err == nil && a.Mode&mount.TypeMask == mount.TypeDir {
		err = fault.E(fault.IsDirectory, op, o.String(), "")
	}
	if err != nil {
		if l, isLast := c.holds.EndOpen(o, flags); isLast {
			c.holds.Release(l)
		}
		return mount.Opened{}, err
	}
	return c.opened(ctx, who, b, a, flags, cues), nil
}

// toOpen returns attributes with Content. The active has heard of the open then,
// or gave a lease on the file itself: before the last name goes, it asks whether
// the file is open here.
func (c *Client) toOpen(ctx context.Context, o ids.Object, hold content.Hold) (*pb.Attr, error) {
	if err := c.recovery.Await(ctx, o); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		a, err := c.attrToOpen(ctx, o)
		if err != nil || !hold.Outdated(a) || try == openTries {
			return a, err
		}
	}
}

// openTries bounds how often attributes are asked for again because a commit of
// this client overtook them. Behind that, the file is read as the commit left it,
// but not by the kernel ahead.
const openTries = 3

func (c *Client) attrToOpen(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	if c.deferred.Of(o) != nil {
		if a, _, ok := c.names.Attr(o); ok {
			return a, nil
		}
	}
	c.ahead.Await(ctx, o)
	if a, ok := c.names.Own(o); ok && (a.Content != nil || a.Size == 0 || a.Mode&mount.TypeMask != mount.TypeRegular) {
		c.ahead.OpenedKnown(o)
		return a, nil
	}
	c.ahead.OpenedUnknown(o)
	return c.calls.Fetch(ctx, o, calls.Wanted{Content: true, Opening: true})
}
