package operate

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/tree"
)

// bornLeases notes which directories have an exclusive lease.
type bornLeases struct {
	noLeases
	dirs map[ids.Object]bool
}

func (b *bornLeases) Born(session uint64, epoch ids.Epoch, dirs []ids.Object) (out []*pb.Grant) {
	for _, o := range dirs {
		b.dirs[o] = true
		out = append(out, &pb.Grant{Object: uint64(o), What: pb.Grant_ALONE, Session: session, Epoch: uint64(epoch)})
	}
	return out
}

func (b *bornLeases) Unborn(grants []*pb.Grant) {
	for _, g := range grants {
		delete(b.dirs, ids.Object(g.Object))
	}
}

// makeAlone hands in a batch that makes directories for a session alone: one, and
// another one of the same name. It returns the first one's object.
func (s *single) makeAlone(reserve *Answer) (ids.Object, *Answer) {
	s.t.Helper()
	first := reserve.Result.GetFirst()
	var list []*pb.Operation
	for i := range uint64(2) {
		list = append(list, &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{
			Dir: uint64(ids.RootObject), Name: []byte("d"), Mode: tree.TypeDir | 0o755, Object: first + i, Alone: true}}})
	}
	a := &Answer{Err: fault.E(fault.Again, "test", "", "not answered yet")}
	s.Operate(&Operation{Slice: theSlice, Client: 9, Number: 2, Lowest: 2, Session: 4, Trusted: true,
		Op:   &pb.Operation{TimeNs: 2, Op: &pb.Operation_Batch{Batch: &pb.Batch{Operations: list}}},
		Done: func(_ *Operation, answer Answer) { *a = answer }})
	return ids.Object(first), a
}

// TestBorn_LeasesComeBeforeTheDirectory has a batch make directories. The one that
// it makes is leased while nobody can know of it, and the answer says so.
func TestBorn_LeasesComeBeforeTheDirectory(t *testing.T) {
	s := newSingle(t)
	leases := &bornLeases{dirs: map[ids.Object]bool{}}
	s.o.Leases = leases
	reserve := s.hand(1, nil, &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Reserve: 2}}})
	s.settle()
	o, made := s.makeAlone(reserve)
	s.wait(0)
	if _, err := tree.Lookup(Committed(s.meta, theSlice), ids.RootObject, []byte("d")); !fault.Is(err, fault.NotFound) {
		t.Fatalf("the directory is there before the disk has it: %v", err)
	}
	if len(leases.dirs) != 1 || !leases.dirs[o] {
		t.Errorf("leased are %v, want %v alone", leases.dirs, o)
	}
	s.settle()
	if made.Err != nil || len(made.Result.GetResults()) != 2 || len(made.Grants) != 1 || made.Grants[0].Object != uint64(o) || !leases.dirs[o] {
		t.Errorf("got %+v, and %v leased", made, leases.dirs)
	}
}

// TestBorn_LeasesGoWithABatchThatFailed replaces the active while a batch is under
// way.
func TestBorn_LeasesGoWithABatchThatFailed(t *testing.T) {
	s := newSingle(t)
	leases := &bornLeases{dirs: map[ids.Object]bool{}}
	s.o.Leases = leases
	reserve := s.hand(1, nil, &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{Reserve: 2}}})
	s.settle()
	o, made := s.makeAlone(reserve)
	s.wait(0)
	if !leases.dirs[o] {
		t.Fatalf("leased are %v, want %v", leases.dirs, o)
	}
	members := []geoconfig.Member{{Node: "n", State: geoconfig.Normal, Incarnation: 1}, {Node: "m", State: geoconfig.Normal, Incarnation: 1}}
	s.Learn([]geoconfig.SliceRow{{ID: theSlice, Epoch: 2, Active: "m", Policy: geoconfig.Policy{Level: 1}, Members: members}})
	s.wait(0)
	if made.Refused == nil || s.Published(theSlice).Role == replica.RoleLeading {
		t.Fatalf("got %+v, want it refused by a node that leads no more", made)
	}
	if len(leases.dirs) != 0 || len(made.Grants) != 0 {
		t.Errorf("%v are leased still", leases.dirs)
	}
}
