package cartwheel

import (
	"cmp"
	"context"

	"cartwheel.dev/clients/cartwheel/alone"
	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/creation"
	"cartwheel.dev/clients/cartwheel/holds"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/replies"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Link implements mount.Names.
func (c *Client) Link(ctx context.Context, who mount.Caller, id, dirID mount.Inode, name string) (mount.Entry, error) {
	o, _, ok := c.nodes.Find(id)
	dir, cues, ok2 := c.nodes.Find(dirID)
	if !ok || !ok2 {
		return mount.Entry{}, staleNode
	}
	if err := creation.CheckName(name); err != nil {
		return mount.Entry{}, err
	}
	ctx, done := timeouts.Within(ctx, cues.Terms())
	defer done()
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	var e mount.Entry
	err := calls.AsCaller(who, func(p *pb.Principal) error {
		mark := c.begin(dir, 0, o, name)
		defer c.names.End(&mark)
		resp, by, err := c.calls.Operate(out, calls.Operation{Slice: dir.Slice(), Principal: p, Level: cues.Only(cue.Link).Sync(), Op: &pb.Operation{
			Op: &pb.Operation_Link{Link: &pb.Link{Object: uint64(o), Dir: uint64(dir), Name: []byte(name)}}}})
		if err != nil {
			if calls.IsUnknown(err) {
				c.revocation.Doubt(dir, o)
			}
			return err
		}
		r := resp.Result
		c.names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
			l.Attr(r.Dir, false)
			l.Attr(r.Attr, false)
			l.Entry(dir, name, names.Entry{Object: o, Type: r.Attr.GetMode() & mount.TypeMask})
		})
		a := r.Attr
		if a == nil {
			if a, err = c.calls.Attr(out, o); err != nil {
				return err
			}
		}
		e = c.replies.Named(replies.In{Node: dirID, Dir: dir, Cues: cues}, name, a)
		c.kernel.TellAliases(dir, cues, name)
		return nil
	})
	return e, err
}

// Rename implements mount.Names.
func (c *Client) Rename(ctx context.Context, who mount.Caller, id mount.Inode, name string, newID mount.Inode, newName string, flags mount.RenameFlags) error {
	const op fault.Op = "cartwheel.Rename"
	dir, cues, ok := c.nodes.Find(id)
	to, toCues, ok2 := c.nodes.Find(newID)
	if !ok || !ok2 {
		return staleNode
	}
	if flags&^(mount.RenameNoReplace|mount.RenameExchange) != 0 {
		return fault.E(fault.Invalid, op, name, "")
	}
	if err := refuseCue(name, newName); err != nil {
		return err
	}
	if len(newName) > mount.NameMax {
		return fault.E(fault.NameTooLong, op, "", "")
	}
	ctx, done := timeouts.Within(ctx, toCues.Terms())
	defer done()
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	r := renaming{who: who, dir: dir, to: to, name: name, newName: newName, flags: flags, cues: cues, toCues: toCues}
	return c.replies.Rename(replies.Rename{
		PID: who.PID, From: inodes.Name{Dir: id, Name: name}, To: inodes.Name{Dir: newID, Name: newName},
		Dir: dir, NewDir: to, Exchange: flags&mount.RenameExchange != 0,
	}, func(source, target ids.Object) error {
		r.source, r.target = source, target
		return calls.AsCaller(who, func(p *pb.Principal) error {
			r.p = p
			return c.rename(out, r)
		})
	})
}

// renaming is a rename on its way.
type renaming struct {
	who           mount.Caller
	p             *pb.Principal
	dir, to       ids.Object
	name, newName string
	// source and target are what the names have to mean; 0: whatever they do.
	source, target ids.Object
	flags          mount.RenameFlags
	cues, toCues   cue.Set
}

func (c *Client) rename(ctx context.Context, r renaming) error {
	source, _, _ := c.names.Lookup(r.dir, r.name)
	exchange := r.flags&mount.RenameExchange != 0
	var target holds.Victim
	if exchange {
		e, _, _ := c.names.Lookup(r.to, r.newName)
		target.Object = e.Object
	} else {
		target = c.holds.Victim(r.to, r.newName, r.target)
	}
	defer target.End()
	if err := c.opens.Settle(ctx, cmp.Or(r.source, source.Object, c.calls.Means(r.dir, r.name))); err != nil {
		return err
	}
	if !exchange && c.renameAlone(ctx, &r, source.Object, &target) {
		return nil
	}
	mark := c.begin(r.dir, r.to, source.Object, r.name, r.newName)
	defer c.names.End(&mark)
	resp, by, err := c.calls.Operate(ctx, calls.Operation{Slice: r.dir.Slice(), Principal: r.p, Level: r.toCues.Only(cue.Link).Sync(), Op: &pb.Operation{
		Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: uint64(r.dir), Name: []byte(r.name), NewDir: uint64(r.to), NewName: []byte(r.newName),
			NoReplace: r.flags&mount.RenameNoReplace != 0, Exchange: exchange, Open: target.IsOpen, Object: uint64(r.source), Target: uint64(r.target),
			Alone: c.names.Left(r.dir) > 0 && c.names.Left(r.to) > 0}}}})
	if err != nil {
		if calls.IsUnknown(err) {
			c.revocation.Doubt(r.dir, r.to, source.Object, target.Object)
		}
		return err
	}
	c.learnRename(&mark, by, resp, &r, source.Object, target.Object, exchange)
	if removed := ids.Object(resp.Result.Removed); removed != 0 && !exchange {
		c.holds.Replaced(removed, target.IsOpen)
	}
	c.kernel.TellAliases(r.dir, r.cues, r.name)
	c.kernel.TellAliases(r.to, r.toCues, r.newName)
	return nil
}

// renameAlone renames where this client alone has the directories.
func (c *Client) renameAlone(ctx context.Context, r *renaming, source ids.Object, target *holds.Victim) bool {
	if r.source != 0 && r.source != source || r.target != 0 && r.target != target.Object || r.flags&mount.RenameNoReplace != 0 && target.Object != 0 {
		return false
	}
	if target.IsOpen && target.Object != 0 || !c.alone.Rename(ctx, alone.Renaming{Dir: r.dir, To: r.to, Name: r.name, NewName: r.newName, Object: source,
		Target: target.Object, Who: r.who, Level: r.toCues.Only(cue.Link).Sync()}) {
		return false
	}
	c.kernel.TellAliases(r.dir, r.cues, r.name)
	c.kernel.TellAliases(r.to, r.toCues, r.newName)
	return true
}

func (c *Client) learnRename(mark *names.Mark, by ids.Node, resp *pb.OperateResponse, r *renaming, source, target ids.Object, exchange bool) {
	res := resp.Result
	moved := ids.Object(res.Attr.GetObject())
	same := res.Existed // two names of one object: nothing happened
	if exchange {
		// Parents and change numbers of both moved on.
		c.names.Forget(source)
		c.names.Forget(target)
	}
	c.names.Learn(mark, by, resp.Grants, func(l *names.Learner) {
		l.Attr(res.Dir, false)
		l.Attr(res.NewDir, false)
		if !exchange {
			l.Attr(res.Attr, false)
		}
		switch {
		case same:
		case moved == 0 || exchange:
			l.Unknown(r.dir, r.name)
			l.Unknown(r.to, r.newName)
		default:
			l.Entry(r.dir, r.name, names.Entry{})
			l.Entry(r.to, r.newName, names.Entry{Object: moved, Type: res.Attr.Mode & mount.TypeMask})
		}
	})
}
