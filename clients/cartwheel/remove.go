package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/alone"
	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/holds"
	"cartwheel.dev/clients/cartwheel/timeouts"
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

// begin notes that an operation on names begins, and has the answers that
// would wait for its end given now.
func (c *Client) begin(dir, to, o ids.Object, changed ...string) names.Mark {
	m := c.names.Begin(dir, to, o, changed...)
	c.kernel.Begin(dir, to)
	return m
}

func (c *Client) remove(ctx context.Context, who mount.Caller, id mount.Inode, name string, directory bool) error {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return staleNode
	}
	if err := refuseCue(name); err != nil {
		return err
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	v := c.holds.Victim(dir, name, c.resolver.TakeSeen(dir, name))
	defer func() { v.End() }()
	call := cue.Unlink
	if directory {
		call, v.IsOpen = cue.Rmdir, false // its handles need nothing of the active
	}
	if !v.IsOpen && c.alone.Remove(ctx, alone.Removing{Dir: dir, Name: name, Object: v.Object, Directory: directory, Who: who, Level: cues.Only(call).Sync()}) {
		c.kernel.TellAliases(dir, cues, name)
		return nil
	}
	run := func(p *pb.Principal) error {
		mark := c.begin(dir, 0, v.Object, name)
		defer c.names.End(&mark)
		resp, by, err := c.calls.Operate(out, calls.Operation{Slice: dir.Slice(), Principal: p, Level: cues.Only(call).Sync(), Op: &pb.Operation{
			Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(dir), Name: []byte(name), Directory: directory, Object: uint64(v.Expect), Open: v.IsOpen,
				Alone: c.names.Left(dir) > 0}}}})
		if err != nil {
			if calls.IsUnknown(err) {
				c.revocation.Doubt(dir, v.Object)
			}
			return err
		}
		r := resp.Result
		c.names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
			l.Attr(r.Dir, false)
			l.Attr(r.Attr, false)
			l.Entry(dir, name, names.Entry{})
		})
		c.holds.Removed(ids.Object(r.Removed), r.Attr, v.IsOpen)
		c.kernel.TellAliases(dir, cues, name)
		return nil
	}
	err := calls.AsCaller(who, run)
	if v.Expect != 0 && fault.Is(err, fault.Stale) && !calls.IsUnknown(err) { // another object by now
		v.End()
		v = holds.Victim{IsOpen: !directory}
		err = calls.AsCaller(who, run)
	}
	return err
}
