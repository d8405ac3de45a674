package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/creation"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/replies"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

var _ mount.NamelessCreator = (*Client)(nil)

// object makes something that is not opened.
func (c *Client) object(ctx context.Context, who mount.Caller, id mount.Inode, name string, call cue.Call, create *pb.Create) (mount.Entry, error) {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Entry{}, staleNode
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	create.Exclusive = true
	m, err := c.maker.Make(ctx, creation.Request{Dir: dir, Cues: cues, Name: name, Who: who, Create: create, Call: call})
	if err != nil {
		return mount.Entry{}, err
	}
	return c.replies.Named(replies.In{Node: id, Dir: dir, Cues: cues}, name, m.Attr), nil
}

// Mknod implements mount.Names.
func (c *Client) Mknod(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode, rdev uint32) (mount.Entry, error) {
	if t := mode & mount.TypeMask; t == mount.TypeDir || t == mount.TypeSymlink {
		return mount.Entry{}, fault.E(fault.NotOwner, "cartwheel.Mknod", name, "")
	} else if t == 0 {
		mode |= mount.TypeRegular
	}
	return c.object(ctx, who, dir, name, cue.Open, &pb.Create{Mode: mode, Rdev: rdev})
}

// Mkdir implements mount.Names.
func (c *Client) Mkdir(ctx context.Context, who mount.Caller, dir mount.Inode, name string, mode uint32) (mount.Entry, error) {
	return c.object(ctx, who, dir, name, cue.Mkdir, &pb.Create{Mode: mode&^mount.TypeMask | mount.TypeDir})
}

// Symlink implements mount.Names.
func (c *Client) Symlink(ctx context.Context, who mount.Caller, dir mount.Inode, name, target string) (mount.Entry, error) {
	who.Umask = 0
	return c.object(ctx, who, dir, name, cue.Open, &pb.Create{Mode: mount.TypeSymlink | 0o777, Target: []byte(target)})
}

// Create implements mount.Files.
func (c *Client) Create(ctx context.Context, who mount.Caller, id mount.Inode, name string, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Entry{}, mount.Opened{}, staleNode
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	later := emptiesLater(ctx, flags)
	for try := 1; ; try++ {
		m, err := c.maker.Make(ctx, creation.Request{Dir: dir, Cues: cues, Name: name, Who: who, Call: cue.Open, Writes: flags.Writes(), Create: &pb.Create{
			Mode: mode&^mount.TypeMask | mount.TypeRegular, Exclusive: flags&mount.OpenExclusive != 0,
			Truncate: flags&mount.OpenTruncate != 0 && !later, Open: true}})
		if err == nil && m.Attr.Mode&mount.TypeMask != mount.TypeRegular {
			// The kernel opens what is no regular file itself.
			err = fault.E(fault.Stale, "cartwheel.Create", name, "is no regular file")
		}
		if err != nil {
			return mount.Entry{}, mount.Opened{}, err
		}
		e := c.replies.Named(replies.In{Node: id, Dir: dir, Cues: cues}, name, m.Attr)
		c.nodes.NoteCues(ids.Object(m.Attr.Object), who.PID, cues, c.opt.Clock())
		b := c.nodes.CountOpen(ids.Object(m.Attr.Object), flags)
		b.Dir, b.Name = dir, name
		if err = c.openExisting(ctx, who, &b, &m, cues, flags); err == nil {
			err = mayWrite(m.Attr, flags)
		}
		if err == nil {
			out := c.opened(ctx, who, b, m.Attr, flags, cues)
			if later && m.Existed {
				if err = empty(ctx, c, e.Node, out.Handle, m.Attr); err != nil {
					c.nodes.Forget(e.Node, 1)
					return mount.Entry{}, mount.Opened{}, err
				}
			}
			if m.Existed {
				e.Attr, _ = c.replies.Stat(m.Attr)
			}
			return e, out, nil
		}
		if l, isLast := c.holds.EndOpen(b.Object, flags); isLast {
			c.holds.Release(l)
		}
		c.nodes.Forget(e.Node, 1)
		if !fault.Is(err, fault.Stale) || try == lookTries { // else it was removed meanwhile
			return mount.Entry{}, mount.Opened{}, err
		}
		c.names.Forget(dir)
	}
}

// openExisting truncates a file that was there before Create, if it has to, and
// returns in m what it is like now that its open is counted. One that was made
// needs neither: its active heard of the open with that.
func (c *Client) openExisting(ctx context.Context, who mount.Caller, b *inodes.Opening, m *creation.Made, cues cue.Set, flags mount.OpenFlags) (err error) {
	if m.Existed && flags&mount.OpenTruncate != 0 && m.Attr.Size > 0 && !emptiesLater(ctx, flags) { // it lives in another slice
		if m.Attr, err = c.opens.Truncate(ctx, who, b.Object, cues); err != nil {
			return err
		}
	}
	if _, own := c.names.Own(b.Object); own {
		return nil
	}
	if !m.Existed {
		if _, _, ok := c.names.Attr(b.Object); !ok {
			c.engine.Invalidate(b.Object) // it may have changed before the open was counted
		}
		return nil
	}
	hold := c.engine.Hold(b.Object)
	defer hold.Release()
	m.Attr, err = c.opens.Attr(ctx, b.Object, hold)
	return err
}

// CreateNameless implements mount.NamelessCreator.
func (c *Client) CreateNameless(ctx context.Context, who mount.Caller, id mount.Inode, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Entry{}, mount.Opened{}, staleNode
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	a, err := c.maker.MakeNameless(ctx, who, dir, cues, mode)
	if err != nil {
		return mount.Entry{}, mount.Opened{}, err
	}
	e := c.replies.Entry(a, cues)
	opened := c.opened(ctx, who, c.nodes.CountOpen(ids.Object(a.Object), flags), a, flags, cues)
	c.nodes.MarkHeld(ids.Object(a.Object)) // since it was made
	return e, opened, nil
}
