package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Unlink implements mount.Names.
func (c *Client) Unlink(ctx context.Context, who mount.Caller, dir mount.Inode, name string) error {
	return c.remove(ctx, who, dir, name, false)
}

// Rmdir implements mount.Names.
func (c *Client) Rmdir(ctx context.Context, who mount.Caller, dir mount.Inode, name string) error {
	return c.remove(ctx, who, dir, name, true)
}

// refuseCue answers for cues where a name is removed or moved.
func refuseCue(list ...string) error {
	for _, name := range list {
		if _, is, _ := cue.Parse(name); is { // a bad value is as little to be moved
			return fault.E(fault.Busy, "cartwheel.names", name, "is a cue, not a name")
		}
	}
	return nil
}

// victim is what a name means that is about to be removed.
type victim struct {
	object ids.Object // 0: not known, or nothing
	// expect is what the active is to check that the name means; 0: nothing.
	expect ids.Object
	// open is whether the active is told that it is open here: also where it is
	// not known, because a file that is open must not go; a hold too many is given
	// back.
	open bool
	// end is called when it is decided whether it is gone.
	end func()
}

// victim returns what a name means, by a lease on its directory or else for all
// that shown says, which the active then checks; 0: nothing is said.
func (c *Client) victim(dir ids.Object, name string, shown ids.Object) (v victim) {
	e, _, ok := c.names.Lookup(dir, name)
	if !ok {
		e.Object = shown
	}
	if e.Object == 0 {
		return victim{open: !ok, end: func() {}}
	}
	v.object = e.Object
	if !ok {
		v.expect = shown
	}
	v.open, v.end = c.nodes.BeginRemoval(e.Object)
	return v
}

func (c *Client) remove(ctx context.Context, who mount.Caller, id mount.Inode, name string, directory bool) error {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	if err := refuseCue(name); err != nil {
		return err
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	v := c.victim(dir, name, c.resolver.TakeSeen(dir, name))
	defer func() { v.end() }()
	call := cue.Unlink
	if directory {
		call, v.open = cue.Rmdir, false // its handles need nothing of the active
	}
	run := func(p *pb.Principal) error {
		mark := c.begin(dir, 0, v.object, name)
		defer c.names.End(&mark)
		resp, by, err := c.calls.Operate(out, calls.Operation{Slice: dir.Slice(), Principal: p, Level: cues.Only(call).Sync(), Op: &pb.Operation{
			Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(dir), Name: []byte(name), Directory: directory, Object: uint64(v.expect), Open: v.open}}}})
		if err != nil {
			if calls.IsUnknown(err) {
				c.doubt(dir, v.object)
			}
			return err
		}
		r := resp.Result
		c.names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
			l.Attr(r.Dir, false)
			l.Attr(r.Attr, false)
			l.Entry(dir, name, names.Entry{})
		})
		c.gone(ids.Object(r.Removed), r.Attr, v.open)
		c.tellAliases(dir, cues, name)
		return nil
	}
	err := calls.AsCaller(who, run)
	if v.expect != 0 && fault.Is(err, fault.Stale) && !calls.IsUnknown(err) { // another object by now
		v.end()
		v = victim{open: !directory, end: func() {}}
		err = calls.AsCaller(who, run)
	}
	return err
}

// gone settles what lost a name: what is open here is held at the active until
// it is closed.
func (c *Client) gone(o ids.Object, a *pb.Attr, told bool) {
	if o == 0 {
		return
	}
	if a != nil && a.Nlink > 0 && a.Mode&mount.TypeMask != mount.TypeDir {
		return
	}
	if !told {
		c.names.Forget(o)
		return
	}
	l, letGo := c.nodes.Unnamed(o)
	if !letGo {
		return
	}
	c.names.Forget(o)
	c.letGo(l)
}
