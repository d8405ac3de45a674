package creation

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

// apart makes the object in another slice than its directory, and names it then.
// What is never named, the nodes sweep away.
func (k *Maker) apart(ctx context.Context, m Request, p *pb.Principal, dir *pb.Attr, slice ids.Slice) (Made, error) {
	const op fault.Op = "creation.apart"
	if res, done, err := k.existing(ctx, m); done || err != nil {
		return res, err
	}
	mark := k.opt.Begin(m.Dir, m.Name)
	defer k.opt.Names.End(&mark)
	resp, by, err := k.opt.Calls.Operate(ctx, calls.Operation{Slice: slice, Principal: p, Level: m.level(),
		Op: &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: k.object(&m, dir, slice)}}})
	if err != nil {
		return Made{}, err // no client will ever see it
	}
	k.opt.Deferred.Got(resp.Result)
	a := resp.Result.Attr
	obj := ids.Object(a.GetObject())
	named, namedBy, err := k.opt.Calls.Operate(ctx, calls.Operation{Slice: m.Dir.Slice(), Principal: p, Level: m.level(), Op: &pb.Operation{
		Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{Dir: uint64(m.Dir), Name: []byte(m.Name), Object: uint64(obj), Mode: a.GetMode() & mount.TypeMask, Made: resp.Result.Made}}}})
	if fault.Is(err, fault.Exists) && !m.Create.Exclusive && a.GetMode()&mount.TypeMask == mount.TypeRegular {
		k.opt.Names.Forget(m.Dir)
		res, done, err := k.existing(ctx, m)
		if err == nil && !done {
			err = fault.E(fault.Again, op, m.Name, "the name comes and goes")
		}
		return res, err
	}
	if err != nil {
		if calls.IsUnknown(err) {
			k.opt.Doubt(m.Dir)
		}
		return Made{}, err
	}
	k.opt.Names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
		l.Attr(a, true)
		if a.Mode&mount.TypeMask == mount.TypeDir {
			l.Complete(obj)
		}
	})
	k.opt.Names.Learn(&mark, namedBy, named.Grants, func(l *names.Learner) {
		l.Attr(named.Result.Dir, false)
		l.Entry(m.Dir, m.Name, names.Entry{Object: obj, Type: a.Mode & mount.TypeMask})
	})
	k.opt.Receipts.Note(obj, resp.Receipt)
	k.opt.Made(m.Dir, m.Cues, m.Name)
	return Made{Attr: a}, nil
}

// object is the operation that makes an object without a name, with what it
// inherits of its directory.
func (k *Maker) object(m *Request, dir *pb.Attr, slice ids.Slice) *pb.MakeObject {
	mk := &pb.MakeObject{Mode: m.Create.Mode, Umask: m.Create.Umask, Rdev: m.Create.Rdev, Target: m.Create.Target,
		Cues: cue.Inherit(dir.Cues, m.Create.Cues), Parent: uint64(m.Dir), Alone: true}
	mk.Reserve = k.opt.Deferred.Reserve(slice)
	if dir.Mode&mount.SetGID != 0 {
		mk.UseGid, mk.Gid = true, dir.Gid
	}
	for _, x := range dir.Xattrs {
		if x.Name == mount.DefaultACL {
			mk.Xattrs = append(mk.Xattrs, x)
		}
	}
	return mk
}

// existing looks whether the name is taken, before an object is made for nothing.
// Where it is, done is true, with an error or with what is opened instead.
func (k *Maker) existing(ctx context.Context, m Request) (res Made, done bool, err error) {
	const op fault.Op = "creation.existing"
	a, e, err := k.opt.Find(ctx, m.Who, m.Dir, m.Name)
	if err != nil || e.Object == 0 {
		return Made{}, false, err
	}
	switch {
	case m.Create.Exclusive || m.Create.Mode&mount.TypeMask != mount.TypeRegular:
		return Made{}, true, fault.E(fault.Exists, op, m.Name, "")
	case a.Mode&mount.TypeMask == mount.TypeDir:
		return Made{}, true, fault.E(fault.IsDirectory, op, m.Name, "")
	}
	return Made{Attr: a, Existed: true}, true, nil
}

// MakeApart makes a file anew whose directory's slice takes no more.
func (k *Maker) MakeApart(ctx context.Context, create *pb.Create, p *pb.Principal) (*pb.Attr, error) {
	const op fault.Op = "creation.MakeApart"
	m := Request{Dir: ids.Object(create.Dir), Name: string(create.Name), Create: create}
	k.opt.Destination.Close(ctx, m.Dir.Slice())
	dir, err := k.opt.Calls.Attr(ctx, m.Dir)
	if err != nil {
		return nil, err
	}
	slice, err := k.opt.Destination.Choose(ctx, dir, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Unreachable, op, m.Name, err)
	}
	res, err := k.apart(ctx, m, p, dir, slice)
	if fault.Is(err, fault.Closed) { // that one, too: the next attempt looks for another
		k.opt.Destination.Close(ctx, slice)
		err = fault.Wrap(fault.Unreachable, op, m.Name, err)
	}
	return res.Attr, err
}
