package operate

import (
	"context"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
)

// closing asks for a time to be closed, turns the loop until nothing waits for the disk,
// and returns what became of it.
func (s *single) closing(at hlc.Time) error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- CloseTime(ctx, s.Loop, theSlice, at) }()
	for {
		s.settle()
		select {
		case err := <-done:
			return err
		default:
		}
	}
}

// TestCloseTime_LeavesAnEntryBehindTheTime closes times of a slice in which nothing
// happens. The first is one that an active with another clock has reached, and this one
// not yet. Then come times before the last entry.
func TestCloseTime_LeavesAnEntryBehindTheTime(t *testing.T) {
	s := newSingle(t)
	at := hlc.FromWall(time.Now().Add(30 * time.Second))
	before, _ := s.o.Core.Next(theSlice)
	if err := s.closing(at); err != nil {
		t.Fatal(err)
	}
	after, last := s.o.Core.Next(theSlice)
	if after != before+1 || last <= at {
		t.Errorf("the log went from %d to %d with %v, want one entry behind %v", before, after, last, at)
	}
	if got := hlc.Time(s.Published(theSlice).AppliedTime.Load()); got <= at {
		t.Errorf("%v counts as applied, want more than %v", got, at)
	}
	if err := s.closing(at - 1); err != nil {
		t.Fatal(err)
	}
	if again, _ := s.o.Core.Next(theSlice); again != after {
		t.Errorf("an earlier time cost %d entries, want none", again-after)
	}
	if made := s.create("x", 1); made.Err == nil {
		t.Error("the file was made before the disk had it")
	}
	s.settle()
	if _, last := s.o.Core.Next(theSlice); last <= at {
		t.Errorf("a later operation is at %v, want it after the closed %v", last, at)
	}
	if len(s.fatal) > 0 {
		t.Error(s.fatal)
	}
}

// TestCloseTime_WaitsForWhatIsBeingCommitted has an operation with a later time on its
// way to the disk.
func TestCloseTime_WaitsForWhatIsBeingCommitted(t *testing.T) {
	s := newSingle(t)
	at := s.o.HLC.Now()
	s.create("x", 1)
	s.wait(0)
	done := make(chan error, 1)
	go func() { done <- CloseTime(t.Context(), s.Loop, theSlice, at) }()
	for len(done) == 0 {
		s.wait(0)
	}
	if err := <-done; !fault.Is(err, fault.Busy) {
		t.Errorf("while the operation waits for the disk: got %v, want Busy", err)
	}
	s.settle()
	if err := s.closing(at); err != nil {
		t.Errorf("once it is applied: got %v", err)
	}
}

// TestCloseTime_IsForTheActive asks a loop whose slice has another active.
func TestCloseTime_IsForTheActive(t *testing.T) {
	s := newSingle(t)
	s.Learn([]geoconfig.SliceRow{{ID: theSlice, Epoch: 2, Active: "m", Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{
		{Node: "m", State: geoconfig.Normal, Incarnation: 1}, {Node: "n", State: geoconfig.Normal, Incarnation: 1}}}})
	s.settle()
	if err := s.closing(s.o.HLC.Now()); !fault.Is(err, fault.NotActive) {
		t.Errorf("got %v, want NotActive", err)
	}
}
