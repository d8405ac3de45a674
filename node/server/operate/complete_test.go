package operate

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/tree"
)

// keptApart is what a standby keeps.
type keptApart struct {
	list    []*Operation
	settled []uint64 // numbers
}

func (k *keptApart) Of(ids.Slice) []*Operation { return k.list }

func (k *keptApart) Settled(_ ids.Slice, _, number uint64) { k.settled = append(k.settled, number) }

// kept is a create that a standby keeps, of the client that hand has.
func kept(name string, client, number uint64) *Operation {
	return &Operation{Slice: theSlice, Client: client, Number: number, Lowest: number, Trusted: true, Held: true, Kept: true,
		Op: &pb.Operation{TimeNs: 2, Op: &pb.Operation_Create{Create: &pb.Create{Dir: uint64(ids.RootObject), Name: []byte(name), Mode: 0o100644, Exclusive: true}}}}
}

// takeOver has the loop lead its slice as one that took over, with creates kept.
func (s *single) takeOver(change func(*geoconfig.SliceRow), list ...*Operation) *keptApart {
	k := &keptApart{list: list}
	s.o.Pending = k
	row := s.slice(theSlice).row.Clone()
	if change != nil {
		change(&row)
	}
	s.role(&replica.Role{Slice: theSlice, Kind: replica.RoleActive, Row: &row})
	s.role(&replica.Role{Slice: theSlice, Kind: replica.RoleLeading, Row: &row})
	s.wait(0)
	return k
}

func (s *single) serves() bool { return s.Published(theSlice).Serves(s.now) }

// has reports whether there is a file of a name, as a create that wants to be the first
// tells.
func (s *single) has(name string, number uint64) bool {
	s.t.Helper()
	op := kept(name, 9, number).Op
	a := s.hand(number, nil, op)
	s.settle()
	if a.Err != nil || a.Refused != nil {
		s.t.Fatalf("%s: %+v", name, a)
	}
	return fault.Kind(a.Result.Kind) == fault.Exists
}

// TestComplete_ServesNobodyBefore has a node take over with a create that it keeps.
// Until that is applied it serves nobody, and then the file is there.
func TestComplete_ServesNobodyBefore(t *testing.T) {
	s := newSingle(t)
	s.create("registers", 1)
	s.settle()
	if !s.serves() {
		t.Fatal("the loop does not serve: the test shows nothing")
	}
	k := s.takeOver(nil, kept("kept", 9, 2))
	if s.serves() {
		t.Error("reads are answered before what was kept is applied")
	}
	early := s.create("other", 3)
	s.wait(0)
	if early.Refused == nil {
		t.Errorf("an operation is taken before what was kept is applied: %+v", early)
	}
	s.settle()
	if !s.serves() {
		t.Error("nobody is served once it is applied")
	}
	if len(k.settled) == 0 || k.settled[0] != 2 {
		t.Errorf("settled are %v, want number 2", k.settled)
	}
	if !s.has("kept", 4) {
		t.Error("the file that was kept is not there")
	}
}

// TestComplete_WhateverTheSliceRefusesNow has a node take over a slice that was closed
// meanwhile, with a full disk, and a log that has no room at first.
func TestComplete_WhateverTheSliceRefusesNow(t *testing.T) {
	s := newSingle(t)
	s.create("registers", 1)
	s.settle()
	s.o.Full = func(ids.Slice) bool { return true }
	s.disk.room = fault.E(fault.Overloaded, "test", "", "")
	s.takeOver(func(row *geoconfig.SliceRow) { row.Closed = true }, kept("kept", 9, 2))
	s.settle()
	if s.serves() {
		t.Error("somebody is served while what was kept is not in the log")
	}
	s.disk.room = nil
	s.wait(50 * time.Millisecond)
	s.settle()
	if !s.serves() {
		t.Error("nobody is served though the log has room")
	}
	if !s.has("kept", 3) {
		t.Error("the file that was kept is not there")
	}
}

// TestComplete_NotBehindAHandOver has a node get its slice from an active that handed
// over everything. What it keeps was never answered, and waits for nobody.
func TestComplete_NotBehindAHandOver(t *testing.T) {
	s := newSingle(t)
	k := &keptApart{list: []*Operation{kept("kept", 9, 2)}}
	s.o.Pending = k
	row := s.slice(theSlice).row
	s.role(&replica.Role{Slice: theSlice, Kind: replica.RoleActive, Row: row})
	s.role(&replica.Role{Slice: theSlice, Kind: replica.RoleLeading, Row: row, Leases: []byte{}})
	s.wait(0)
	if !s.serves() || len(k.settled) > 0 {
		t.Errorf("serves: %v, settled: %v; want it to serve at once, with nothing settled", s.serves(), k.settled)
	}
}

// TestKept_NotForAClientThatIsNotRegistered has a member send what it kept so long that
// the client's registration expired. It may have been done and undone since.
func TestKept_NotForAClientThatIsNotRegistered(t *testing.T) {
	s := newSingle(t)
	var got Answer
	op := kept("old", 77, 1)
	op.Done = func(_ *Operation, a Answer) { got = a }
	s.Operate(op)
	s.settle()
	if !fault.Is(got.Err, fault.Expired) {
		t.Errorf("got %+v, want Expired", got)
	}
	if s.has("old", 1) {
		t.Error("the file is there")
	}
}

// TestHeld_ARefusalIsSettled sends a create that is refused. Sent again after its
// reason is gone, it is refused still.
func TestHeld_ARefusalIsSettled(t *testing.T) {
	for _, held := range []bool{true, false} {
		s := newSingle(t)
		s.create("name", 1)
		s.settle()
		send := func() (a Answer) {
			op := kept("name", 9, 2)
			op.Held, op.Done = held, func(_ *Operation, got Answer) { a = got }
			s.Operate(op)
			s.settle()
			return a
		}
		if a := send(); fault.Kind(a.Result.GetKind()) != fault.Exists {
			t.Fatalf("held %v: got %+v, want Exists", held, a)
		}
		s.Operate(&Operation{Slice: theSlice, Client: 9, Number: 3, Lowest: 2, Trusted: true, Done: func(*Operation, Answer) {},
			Op: &pb.Operation{TimeNs: 2, Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: uint64(ids.RootObject), Name: []byte("name")}}}})
		s.settle()
		if again := send(); (len(again.Encoded) > 0) != held {
			t.Errorf("held %v: again: %+v; want the first answer where it was held, and a file otherwise", held, again)
		}
	}
}

// TestComplete_WaitsForAnIntentAlone has a node take over with a create that an intent
// is in the way of. Others are served meanwhile, but for the client of that create:
// what it does next would make the log forget the create.
func TestComplete_WaitsForAnIntentAlone(t *testing.T) {
	s := newSingle(t)
	s.create("registers", 1)
	s.settle()
	sl := s.slice(theSlice)
	op := kept("kept", 9, 2)
	s.takeOver(nil)
	op.completes, op.Done = true, func(op *Operation, a Answer) { completed(s.Loop, op, a) }
	sl.completing = 1
	s.park(sl, op, 1)
	pass(s.Loop, sl, op)
	if !s.serves() {
		t.Error("nobody is served while a create waits for an intent")
	}
	own := s.create("own", 3)
	var other Answer
	s.Operate(&Operation{Slice: theSlice, Client: 8, Number: 1, Lowest: 1, Trusted: true, Op: kept("other", 8, 1).Op, Done: func(_ *Operation, a Answer) { other = a }})
	s.settle()
	if own.Refused == nil {
		t.Errorf("its client goes on: %+v", own)
	}
	if other.Refused != nil || other.Err != nil {
		t.Errorf("another client does not: %+v", other)
	}
	s.unpark(sl)
	s.settle()
	again := s.create("own", 3)
	s.settle()
	if again.Refused != nil || again.Err != nil {
		t.Errorf("its client does not go on once the create is done: %+v", again)
	}
	if !s.has("kept", 4) {
		t.Error("the file that was kept is not there")
	}
}

// TestIsDecisive_WhatFilesMayCountOn lists which operations a file that is made behind
// them waits for, before its create is answered early.
func TestIsDecisive_WhatFilesMayCountOn(t *testing.T) {
	dir, file := uint32(tree.TypeDir|0o755), uint32(tree.TypeRegular|0o644)
	for _, c := range []struct {
		name string
		op   *pb.Operation
		want bool
	}{
		{"a file is made", &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Mode: file}}}, false},
		{"a directory is made", &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Mode: dir}}}, true},
		{"a file is removed", &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{}}}, false},
		{"a directory is removed", &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Directory: true}}}, true},
		{"a file is written", &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{}}}, false},
		{"an object is made without a name", &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Mode: file}}}, false},
		{"a file is opened", &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{}}}, false},
		{"a file gets a name", &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{}}}, false},
		{"a name moves", &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{}}}, true},
		{"rights change", &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{}}}, true},
		{"an ACL changes", &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{}}}, true},
		{"an intent's step", &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{}}}, true},
		{"several at once", &pb.Operation{Op: &pb.Operation_Batch{Batch: &pb.Batch{}}}, true},
		{"none", nil, true},
	} {
		if got := isDecisive(c.op); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
