package server_test

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// batchRows are what roles do with batches. The last operation says how one ended,
// or the first one that was refused where all of them need a right.
func batchRows() []accessRow {
	size := uint64(3)
	return []accessRow{
		{"batch", method.Operate, func(a *asker, x *bobs) error {
			return a.batch(x, false, &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: x.dir, Name: []byte("file")}}})
		}, byRight},
		{"batch of a commit", method.Operate, func(a *asker, x *bobs) error {
			return a.batch(x, false, &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: x.file, Size: &size}}})
		}, byHost},
		{"batch of a commit of a chunk by its hash", method.Operate, func(a *asker, x *bobs) error { return a.batch(x, false, commitOf(x, nil)) },
			outcomes(refused, fault.Invalid, fault.Invalid, fault.Invalid, fault.Invalid)},
		{"batch in what it makes", method.Operate, func(a *asker, x *bobs) error {
			d, f := a.numbered(x.dir, "made"), a.numbered(0, "f")
			d.GetCreate().Mode = tree.TypeDir | 0o700
			f.GetCreate().Dir = d.GetCreate().Object
			return a.batch(x, false, d, f, &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{Object: f.GetCreate().Object, Name: "user.a", Value: []byte("b")}}})
		}, but(byRight, peer, fault.Invalid)}, // nodes get no numbers
		{"batch that names what it did not make", method.Operate, namesUnmade, outcomes(fault.Stale, fault.Stale, done, done, done)},
	}
}

// batch sends a batch and returns how its last operation ended; the first one that
// was refused counts, unless refusals are expected.
func (a *asker) batch(x *bobs, last bool, list ...*pb.Operation) error {
	r, err := a.operate(1, &pb.Operation{Op: &pb.Operation_Batch{Batch: batchOf(list...)}}, x.tickets)
	if err != nil {
		return err
	}
	for i, part := range r.Results {
		if part.Kind != 0 && (!last || i == len(list)-1) {
			return kind(part.Kind)
		}
	}
	if len(r.Results) != len(list) {
		a.w.Errorf("%d of %d operations ran", len(r.Results), len(list))
	}
	return nil
}

// numbered is a create of a file with a number that the role gets.
func (a *asker) numbered(dir uint64, name string) *pb.Operation {
	create := &pb.Create{Dir: dir, Name: []byte(name), Mode: tree.TypeRegular | 0o600}
	if r, err := a.operate(1, &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Reserve: 1}}}, nil); err == nil {
		create.Object = r.First
	}
	return &pb.Operation{Op: &pb.Operation_Create{Create: create}}
}

// namesUnmade writes to a directory that anybody may write to who reaches it, which
// only bob does, behind a create of it that is refused.
func namesUnmade(a *asker, x *bobs) error {
	inner := a.w.must(1, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: x.dir, Name: []byte("inner"), Mode: tree.TypeDir | 0o777}}}).Attr.Object
	again := &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: 1, Name: []byte("inner"), Mode: tree.TypeDir | 0o777, Object: inner}}}
	again.GetCreate().Dir = a.w.must(1, makeDir(a.cl.Host.KeyID(), 0o777)).Attr.Object
	return a.batch(x, true, again, &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{Object: inner, Name: "user.a", Value: []byte("b")}}})
}

// TestAccess_ExclusiveDirectoryIsReached makes bob a directory below one that is
// closed to him then. As long as his session has it exclusively he may name it
// without a ticket; another session of his may not.
func TestAccess_ExclusiveDirectoryIsReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob, x := w.askers[withRight], w.fresh("x")
	bob.look(x, "x")
	bob.renew()
	d := bob.numbered(x.dir, "d")
	d.GetCreate().Mode, d.GetCreate().Alone = tree.TypeDir|0o755, true
	ask := func(session uint64, tickets []*pb.Ticket, op *pb.Operation) (*pb.OperateResponse, error) {
		bob.number++
		answer := &pb.OperateResponse{}
		err := bob.ask(wire.Operation, method.Operate, &pb.OperateRequest{Slice: 1, Number: bob.number, Lowest: bob.number, Unsent: true, Principal: bob.principal,
			Session: session, Operation: op, Tickets: tickets}, answer)
		return answer, err
	}
	made, err := ask(bob.session, x.tickets, &pb.Operation{Op: &pb.Operation_Batch{Batch: batchOf(d)}})
	if err != nil || len(made.Grants) != 2 || len(made.Result.Results[0].GetAttr().GetTicket()) == 0 {
		t.Fatalf("got %v, %v, want a directory with two leases and a ticket", made, err)
	}
	uid := uint32(0)
	w.must(1, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: x.dir, Uid: &uid, Gid: &uid}}})
	file := func(name string) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: d.GetCreate().Object, Name: []byte(name), Mode: tree.TypeRegular | 0o600}}}
	}
	f := bob.numbered(d.GetCreate().Object, "f")
	bob.renew()
	for name, op := range map[string]*pb.Operation{"a batch": {Op: &pb.Operation_Batch{Batch: batchOf(f)}}, "a create": file("g")} {
		if got, err := ask(bob.session, nil, op); err != nil || got.Result.Kind != 0 || len(got.Result.Results) > 0 && got.Result.Results[0].Kind != 0 {
			t.Errorf("%s of the session that has it: %v, %v", name, got, err)
		}
		if got, err := ask(0, nil, op); !fault.Is(err, refused) {
			t.Errorf("%s without the session: %v, %v", name, got, err)
		}
	}
}
