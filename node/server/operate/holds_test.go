package operate

import (
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// TestHolds_SuccessorCountsWhatItFinds has a node begin to act for a slice in
// which a client holds files.
func TestHolds_SuccessorCountsWhatItFinds(t *testing.T) {
	s := newSingle(t)
	number := uint64(0)
	nameless := func() *Answer {
		number++
		a := &Answer{}
		s.Operate(&Operation{Slice: theSlice, Client: 9, Number: number, Lowest: number, Trusted: true, User: "ann",
			Op: &pb.Operation{TimeNs: 2, Op: &pb.Operation_Create{Create: &pb.Create{
				Dir: uint64(ids.RootObject), Mode: 0o100644, Nameless: true}}},
			Done: func(_ *Operation, answer Answer) { *a = answer }})
		s.settle()
		return a
	}
	for range 3 {
		if a := nameless(); a.Err != nil || a.Result.GetKind() != 0 {
			t.Fatalf("%+v", a)
		}
	}
	s.holds = newHolds(3)
	if a := nameless(); !fault.Is(a.Err, fault.Overloaded) {
		t.Errorf("a fourth file: got %+v, want Overloaded", a)
	}
	s.holds.drop(theSlice)
	if h := s.holds; len(h.users)+len(h.clients)+len(h.slices) > 0 {
		t.Errorf("of a slice that was dropped there is left %v, %v, %v", h.users, h.clients, h.slices)
	}
}
