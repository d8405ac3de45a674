package cartwheel

import (
	"context"
	"log/slog"

	"cartwheel.dev/clients/cartwheel/replies"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
)

// Lookup implements mount.Names.
func (c *Client) Lookup(ctx context.Context, who mount.Caller, id mount.Inode, name string) (mount.Entry, error) {
	const op fault.Op = "cartwheel.Lookup"
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Entry{}, staleNode
	}
	if len(name) > mount.NameMax {
		return mount.Entry{}, fault.E(fault.NameTooLong, op, "", "")
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	if name == "." || name == ".." {
		return c.dot(ctx, dir, cues, name)
	}
	if name[0] == '.' {
		if q, is, err := cue.Parse(name); is {
			return c.lookupCue(ctx, id, dir, cues, name, q, err)
		}
	}
	if cues.Only(cue.Readdir).Has(cue.WholeFile) {
		c.resolver.Whole(ctx, who, dir)
	}
	var a *pb.Attr
	var e names.Entry
	var out mount.Entry
	last, err := c.remembered.To(dir, name).Of(cues.Terms()).Take(ctx, func(ctx context.Context) (err error) {
		a, e, out, err = c.lookUp(ctx, who, dir, cues, name)
		return err
	})
	switch {
	case err != nil:
		return mount.Entry{}, err
	case last != nil:
		return c.replies.Entry(last, cues), nil
	case e.Object == 0:
		return mount.Entry{EntryValid: c.replies.Name(id, name, 0, c.names.Means(dir, name, 0))}, nil
	case e.Type == mount.TypeDir:
		c.remembered.NoteDir(dir, name, a)
	}
	if cues.Terms().Eventual {
		c.calls.NoteName(dir, name, e.Object)
	}
	c.nodes.NoteCues(e.Object, who.PID, cues, c.opt.Clock())
	c.replies.Found(&out, replies.In{Node: id, Dir: dir, Cues: cues}, name, a)
	return out, nil
}

// lookTries bounds how often a name is looked up until its file is covered.
const lookTries = 5

// lookUp finds what a name means and counts the lookup. A regular file is then
// covered by a lease: before it loses its last name, its active asks this
// client, which holds it for the open that may follow. Where there was no lease
// to be had, because a change was under way, it asks again.
func (c *Client) lookUp(ctx context.Context, who mount.Caller, dir ids.Object, cues cue.Set, name string) (*pb.Attr, names.Entry, mount.Entry, error) {
	for try := 1; ; try++ {
		a, e, err := c.resolver.Find(ctx, who, dir, name)
		if err != nil || e.Object == 0 {
			return nil, e, mount.Entry{}, err
		}
		out := c.replies.Entry(a, cues)
		eventual := timeouts.Eventual(ctx)
		if c.names.Superseded(a) && try < lookTries && !eventual {
			c.nodes.Forget(out.Node, 1)
			continue
		}
		if a.Mode&mount.TypeMask != mount.TypeRegular {
			return a, e, out, nil
		}
		c.nodes.NoteLookup(e.Object, dir, name, who.PID, c.opt.Clock())
		if _, _, covered := c.names.Attr(e.Object); covered || try == lookTries || eventual {
			return a, e, out, nil
		}
		c.nodes.Forget(out.Node, 1)
	}
}

// dot answers the lookups of "." and "..", which exported mounts ask for.
func (c *Client) dot(ctx context.Context, dir ids.Object, cues cue.Set, name string) (mount.Entry, error) {
	a, err := c.calls.Attr(ctx, dir)
	if err == nil && name == ".." {
		a, err = c.calls.Attr(ctx, ids.Object(a.Parent))
	}
	if err != nil {
		return mount.Entry{}, err
	}
	return c.replies.Entry(a, cues), nil
}

// lookupCue answers for a component that is a cue: its directory's other name.
func (c *Client) lookupCue(ctx context.Context, id mount.Inode, dir ids.Object, cues cue.Set, name string, q cue.Cue, err error) (mount.Entry, error) {
	const op fault.Op = "cartwheel.lookupCue"
	if err == nil {
		cues, err = cues.With(q)
	}
	if err == nil {
		err = cues.Supported()
	}
	if err == nil && q.Name == cue.Snapshot {
		err = fault.E(fault.NotSupported, op, name, "earlier times are shown by Client.FileSystem")
	}
	if err == nil && q.Name == cue.Site && q.Text != cue.RandomSite && !c.siteNamed(ctx, ids.Site(q.Text)) {
		err = fault.E(fault.Invalid, op, name, "there is no such site; `cartwheel status` lists them")
	}
	if err != nil {
		c.opt.Logger.Warn("a cue cannot be honoured", slog.String("cue", name), logattr.Err(err))
		return mount.Entry{}, err
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	var a *pb.Attr
	last, err := c.remembered.Over(dir).Take(ctx, func(ctx context.Context) (err error) {
		a, err = c.calls.Attr(ctx, dir)
		return err
	})
	switch {
	case err != nil:
		return mount.Entry{}, err
	case last != nil:
		return c.replies.Entry(last, cues), nil
	case a.Mode&mount.TypeMask != mount.TypeDir:
		return mount.Entry{}, fault.E(fault.NotDirectory, op, name, "")
	}
	c.remembered.Lead(a, cues.Terms(), c.names.Attr)
	out := c.replies.Entry(a, cues)
	out.EntryValid = c.replies.Name(id, name, out.Node, c.names.Left(dir))
	return out, nil
}

// siteNamed reports whether there is such a site, asking once where it is not
// known.
func (c *Client) siteNamed(ctx context.Context, site ids.Site) bool {
	if c.siteKnown(site) {
		return true
	}
	ctx, cancel := c.limits.Remotely(ctx)
	defer cancel()
	for _, n := range c.cluster.Nearest() {
		if c.cluster.Refresh(ctx, n) == nil {
			break
		}
	}
	return c.siteKnown(site)
}

// Forget implements mount.Names.
func (c *Client) Forget(id mount.Inode, count uint64) { c.nodes.Forget(id, count) }

// Readlink implements mount.Names.
func (c *Client) Readlink(ctx context.Context, who mount.Caller, id mount.Inode) ([]byte, error) {
	o, cues, ok := c.nodes.Find(id)
	if !ok {
		return nil, staleNode
	}
	ctx, done := timeouts.Within(ctx, c.nodes.CuesOf(o, cues, who.PID, c.opt.Clock()).Terms())
	defer done()
	a, err := c.calls.Attr(ctx, o)
	if err != nil {
		return nil, err
	}
	if a.Mode&mount.TypeMask != mount.TypeSymlink {
		return nil, fault.E(fault.Invalid, "cartwheel.Readlink", o.String(), "")
	}
	return append([]byte(nil), a.Target...), nil
}
