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

// MakeNameless makes a file without a name. It goes to its directory's slice, where
// its first name will most likely be.
func (k *Maker) MakeNameless(ctx context.Context, who mount.Caller, dir ids.Object, cues cue.Set, mode uint32) (*pb.Attr, error) {
	create := &pb.Create{Dir: uint64(dir), Nameless: true, Open: true, Umask: who.Umask,
		Mode: mode&^mount.TypeMask | mount.TypeRegular, Cues: cues.Only(cue.Open).Persistent()}
	var a *pb.Attr
	err := as(who, mode, func(p *pb.Principal) (err error) {
		out, cancel := k.opt.Remotely(ctx)
		defer cancel()
		a, err = k.nameless(out, dir, calls.Operation{Slice: dir.Slice(), Principal: p, Level: cues.Only(cue.Open).Sync(),
			Op: &pb.Operation{Op: &pb.Operation_Create{Create: create}}})
		return err
	})
	return a, err
}

// nameless sends what makes a file without a name.
func (k *Maker) nameless(ctx context.Context, dir ids.Object, op calls.Operation) (*pb.Attr, error) {
	mark := k.opt.Begin(dir, "")
	defer k.opt.Names.End(&mark)
	resp, by, err := k.opt.Calls.Operate(ctx, op)
	if err != nil {
		return nil, err // no other client will ever see it
	}
	a := resp.Result.Attr
	if a == nil || a.Object == 0 {
		return nil, fault.E(fault.Corrupt, "creation.nameless", dir.String(), "the answer has no object")
	}
	k.opt.Names.Learn(&mark, by, resp.Grants, func(l *names.Learner) { l.Attr(a, true) })
	k.opt.Receipts.Note(ids.Object(a.Object), resp.Receipt)
	return a, nil
}
