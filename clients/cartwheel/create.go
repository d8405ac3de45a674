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

// making is a new object on its way.
type making struct {
	dir    ids.Object
	cues   cue.Set
	name   string
	who    mount.Caller
	create *pb.Create
	body   [][]byte // of the create's commit
	call   cue.Call
	writes bool // it is made to be written, so that its close is heard of
}

// made is what came of it.
type made struct {
	attr    *pb.Attr
	existed bool
}

// checkNew refuses names that cannot be made: those of cues are there already.
func checkNew(name string) error {
	const op fault.Op = "cartwheel.create"
	if len(name) > mount.NameMax {
		return fault.E(fault.NameTooLong, op, "", "")
	}
	if _, is, err := cue.Parse(name); err != nil {
		return err
	} else if is {
		return fault.E(fault.Exists, op, name, "is a cue")
	}
	return nil
}

// make makes an object with a name: in one operation where it goes to its
// directory's slice, else the object first and then the name.
func (c *Client) make(ctx context.Context, m making) (made, error) {
	if err := checkNew(m.name); err != nil {
		return made{}, err
	}
	if m.writes {
		if here, ok := c.makeAlone(&m); ok {
			return here, nil
		}
	}
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	dir, err := c.calls.Attr(out, m.dir)
	if err != nil {
		return made{}, err
	}
	own := m.cues.Only(m.call).Persistent()
	m.create.Cues, m.create.Dir, m.create.Name, m.create.Umask = own, uint64(m.dir), []byte(m.name), m.who.Umask
	for try := 0; ; try++ {
		slice, err := c.destination.Choose(out, dir, own)
		if fault.Is(err, fault.Again) {
			if c.destination.Pause(out, try) {
				continue
			}
			err = fault.Wrap(fault.TimedOut, "cartwheel.create", m.name, err)
		}
		if err != nil {
			return made{}, err
		}
		var res made
		run := func(p *pb.Principal) (err error) {
			if slice == m.dir.Slice() {
				res, err = c.createHere(out, m, p)
			} else {
				res, err = c.createApart(out, m, p, dir, slice)
			}
			return err
		}
		if m.create.Mode&mount.SetGID != 0 {
			err = run(calls.WithGroups(m.who))
		} else {
			err = calls.AsCaller(m.who, run)
		}
		if !fault.Is(err, fault.Closed) || calls.IsUnknown(err) {
			return res, err
		}
		c.destination.Close(out, slice)
		if !c.destination.Pause(out, try) {
			return made{}, fault.Wrap(fault.TimedOut, "cartwheel.create", m.name, err)
		}
	}
}

// createHere makes object and name in one operation.
func (c *Client) createHere(ctx context.Context, m making, p *pb.Principal) (made, error) {
	mark := c.begin(m.dir, 0, 0, m.name)
	defer c.names.End(&mark)
	c.deferred.Want(m.create, m.dir.Slice())
	resp, by, err := c.calls.Operate(ctx, calls.Operation{Slice: m.dir.Slice(), Principal: p, Level: m.level(), Body: m.body,
		Op: &pb.Operation{Op: &pb.Operation_Create{Create: m.create}}})
	if err != nil {
		if calls.IsUnknown(err) {
			c.doubt(m.dir)
		}
		return made{}, err
	}
	r := resp.Result
	c.deferred.Got(r)
	if r.Attr == nil || r.Attr.Object == 0 {
		return made{}, fault.E(fault.Corrupt, "cartwheel.create", m.name, "the answer has no object")
	}
	o := ids.Object(r.Attr.Object)
	res := made{attr: r.Attr, existed: r.Existed}
	whole := !r.Existed || o.Slice() == m.dir.Slice()
	c.names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
		l.Attr(r.Dir, false)
		if whole {
			l.Attr(r.Attr, !r.Existed)
		}
		l.Entry(m.dir, m.name, names.Entry{Object: o, Type: r.Attr.Mode & mount.TypeMask})
		if !r.Existed && r.Attr.Mode&mount.TypeMask == mount.TypeDir {
			l.Complete(o)
		}
	})
	c.receipts.Note(o, resp.Receipt)
	c.tellAliases(m.dir, m.cues, m.name)
	if !whole {
		res.attr, err = c.calls.Attr(ctx, o)
	}
	return res, err
}

func (m *making) level() uint32 { return m.cues.Only(m.call).Sync() }

// createApart makes the object in another slice than its directory, and names
// it then. What is never named, the nodes sweep away.
func (c *Client) createApart(ctx context.Context, m making, p *pb.Principal, dir *pb.Attr, slice ids.Slice) (made, error) {
	if res, done, err := c.thereAlready(ctx, m); done || err != nil {
		return res, err
	}
	obj := ids.Object(0)
	mk := &pb.MakeObject{Mode: m.create.Mode, Umask: m.create.Umask, Rdev: m.create.Rdev, Target: m.create.Target,
		Cues: cue.Inherit(dir.Cues, m.create.Cues), Parent: uint64(m.dir), Alone: true}
	mk.Reserve = c.deferred.Reserve(slice)
	if dir.Mode&mount.SetGID != 0 {
		mk.UseGid, mk.Gid = true, dir.Gid
	}
	for _, x := range dir.Xattrs {
		if x.Name == mount.DefaultACL {
			mk.Xattrs = append(mk.Xattrs, x)
		}
	}
	mark := c.begin(m.dir, 0, 0, m.name)
	defer c.names.End(&mark)
	resp, by, err := c.calls.Operate(ctx, calls.Operation{Slice: slice, Principal: p, Level: m.level(), Op: &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: mk}}})
	if err != nil {
		return made{}, err // nobody will ever see it
	}
	c.deferred.Got(resp.Result)
	a := resp.Result.Attr
	obj = ids.Object(a.GetObject())
	grants := resp.Grants
	named, namedBy, err := c.calls.Operate(ctx, calls.Operation{Slice: m.dir.Slice(), Principal: p, Level: m.level(), Op: &pb.Operation{
		Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: uint64(m.dir), Name: []byte(m.name), Object: uint64(obj), Mode: a.GetMode() & mount.TypeMask, Made: resp.Result.Made}}}})
	if fault.Is(err, fault.Exists) && !m.create.Exclusive && a.GetMode()&mount.TypeMask == mount.TypeRegular {
		c.names.Forget(m.dir)
		res, done, err := c.thereAlready(ctx, m)
		if err == nil && !done {
			err = fault.E(fault.Again, "cartwheel.create", m.name, "the name comes and goes")
		}
		return res, err
	}
	if err != nil {
		if calls.IsUnknown(err) {
			c.doubt(m.dir)
		}
		return made{}, err
	}
	c.names.Learn(&mark, by, grants, func(l *names.Learner) {
		l.Attr(a, true)
		if a.Mode&mount.TypeMask == mount.TypeDir {
			l.Complete(obj)
		}
	})
	c.names.Learn(&mark, namedBy, named.Grants, func(l *names.Learner) {
		l.Attr(named.Result.Dir, false)
		l.Entry(m.dir, m.name, names.Entry{Object: obj, Type: a.Mode & mount.TypeMask})
	})
	c.receipts.Note(obj, resp.Receipt)
	c.tellAliases(m.dir, m.cues, m.name)
	return made{attr: a}, nil
}

// thereAlready looks whether the name is taken, before an object is made for
// nothing; done with an error or with what is opened instead.
func (c *Client) thereAlready(ctx context.Context, m making) (res made, done bool, err error) {
	const op fault.Op = "cartwheel.create"
	a, e, err := c.resolver.Find(ctx, m.who, m.dir, m.name)
	if err != nil || e.Object == 0 {
		return made{}, false, err
	}
	switch {
	case m.create.Exclusive || m.create.Mode&mount.TypeMask != mount.TypeRegular:
		return made{}, true, fault.E(fault.Exists, op, m.name, "")
	case a.Mode&mount.TypeMask == mount.TypeDir:
		return made{}, true, fault.E(fault.IsDirectory, op, m.name, "")
	}
	return made{attr: a, existed: true}, true, nil
}

// tellAliases makes the kernel look a changed name up again in the directory's
// other names (those with other cues).
func (c *Client) tellAliases(dir ids.Object, cues cue.Set, changed ...string) {
	out, some := c.nodes.ChangeNames(dir, cues, changed)
	if !some {
		return
	}
	done := make(chan struct{})
	c.kernel.Tell(&out, false, func() { close(done) })
	<-done // at most tellLimit: those directories are not locked by this call
}

// object makes something that is not opened.
func (c *Client) object(ctx context.Context, who mount.Caller, id mount.Inode, name string, call cue.Call, create *pb.Create) (mount.Entry, error) {
	dir, cues, ok := c.nodes.Find(id)
	if !ok {
		return mount.Entry{}, staleNode
	}
	create.Exclusive = true
	m, err := c.make(ctx, making{dir: dir, cues: cues, name: name, who: who, create: create, call: call})
	if err != nil {
		return mount.Entry{}, err
	}
	return c.named(id, cues, name, m.attr, dir), nil
}

// named answers a call that made a name.
func (c *Client) named(id mount.Inode, cues cue.Set, name string, a *pb.Attr, dir ids.Object) mount.Entry {
	e := c.entry(a, cues)
	left := c.names.Means(dir, name, ids.Object(a.Object))
	if !cues.Empty() && a.Mode&mount.TypeMask == mount.TypeRegular {
		left = 0
	}
	c.believe(&e, a, id, name, left)
	return e
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

// remakeApart makes a file whose directory's slice has become full since.
func (c *Client) remakeApart(ctx context.Context, create *pb.Create, p *pb.Principal) (*pb.Attr, error) {
	m := making{dir: ids.Object(create.Dir), name: string(create.Name), create: create}
	c.destination.Close(ctx, m.dir.Slice())
	dir, err := c.calls.Attr(ctx, m.dir)
	if err != nil {
		return nil, err
	}
	slice, err := c.destination.Choose(ctx, dir, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Unreachable, "cartwheel.recover", m.name, err)
	}
	res, err := c.createApart(ctx, m, p, dir, slice)
	if fault.Is(err, fault.Closed) { // that one, too: the next attempt looks for another
		c.destination.Close(ctx, slice)
		err = fault.Wrap(fault.Unreachable, "cartwheel.recover", m.name, err)
	}
	return res.attr, err
}
