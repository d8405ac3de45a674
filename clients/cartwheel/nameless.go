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

var _ mount.NamelessCreator = (*Client)(nil)

// CreateNameless implements mount.NamelessCreator. The file goes to its
// directory's slice, where its first name will most likely be.
func (c *Client) CreateNameless(ctx context.Context, who mount.Caller, id mount.Inode, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Entry{}, mount.Opened{}, staleNode
	}
	create := &pb.Create{Dir: uint64(dir), Nameless: true, Open: true, Umask: who.Umask,
		Mode: mode&^mount.TypeMask | mount.TypeRegular, Cues: cues.Only(cue.Open).Persistent()}
	var a *pb.Attr
	run := func(p *pb.Principal) (err error) {
		out, cancel := c.limits.Remotely(ctx)
		defer cancel()
		a, err = c.createNameless(out, dir, calls.Operation{Slice: dir.Slice(), Principal: p, Level: cues.Only(cue.Open).Sync(),
			Op: &pb.Operation{Op: &pb.Operation_Create{Create: create}}})
		return err
	}
	var err error
	if mode&mount.SetGID != 0 {
		err = run(calls.WithGroups(who))
	} else {
		err = calls.AsCaller(who, run)
	}
	if err != nil {
		return mount.Entry{}, mount.Opened{}, err
	}
	e := c.entry(a, cues)
	opened := c.opened(ctx, who, c.nodes.CountOpen(ids.Object(a.Object), flags), a, flags, cues)
	c.nodes.MarkHeld(ids.Object(a.Object)) // since it was made
	return e, opened, nil
}

func (c *Client) createNameless(ctx context.Context, dir ids.Object, op calls.Operation) (*pb.Attr, error) {
	mark := c.begin(dir, 0, 0)
	defer c.names.End(&mark)
	resp, by, err := c.calls.Operate(ctx, op)
	if err != nil {
		return nil, err // nobody else will ever see it
	}
	a := resp.Result.Attr
	if a == nil || a.Object == 0 {
		return nil, fault.E(fault.Corrupt, "cartwheel.CreateNameless", dir.String(), "the answer has no object")
	}
	c.names.Learn(&mark, by, resp.Grants, func(l *names.Learner) { l.Attr(a, true) })
	c.receipts.Note(ids.Object(a.Object), resp.Receipt)
	return a, nil
}
