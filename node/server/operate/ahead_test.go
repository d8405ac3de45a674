package operate

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
)

// TestTime_FarAheadStaysInItsSlice continues a slice whose last active had a
// clock an hour ahead. Its times stay so, and reach nothing else of this node.
func TestTime_FarAheadStaysInItsSlice(t *testing.T) {
	s := newSingle(t)
	far := hlc.FromWall(time.Now().Add(time.Hour))
	s.Do(func(core *replica.Node, now replica.Time) {
		core.Propose(now, replica.Proposal{Entry: replica.Entry{Slice: theSlice, Time: far}})
	})
	s.settle()
	made := s.create("x", 1)
	s.settle()
	if made.Err != nil || made.Refused != nil || hlc.Time(made.Time) <= far {
		t.Errorf("got %+v, want a file made after %v", made, far)
	}
	if last := s.o.HLC.Last(); last >= far {
		t.Errorf("the node's clock is at %v now", last)
	}
	if len(s.fatal) > 0 {
		t.Error(s.fatal)
	}
}

// TestTime_FarAheadRunsNothingAgain continues a slice whose last active had a
// clock a day ahead. A client's first operation, sent again, is not run again.
func TestTime_FarAheadRunsNothingAgain(t *testing.T) {
	s := newSingle(t)
	first := s.create("x", 1)
	s.settle()
	s.Do(func(core *replica.Node, now replica.Time) {
		core.Propose(now, replica.Proposal{Entry: replica.Entry{Slice: theSlice, Time: hlc.FromWall(time.Now().Add(25 * time.Hour))}})
	})
	s.settle()
	again := s.create("x", 1)
	s.settle()
	if first.Err != nil || again.Err != nil || again.Serial != first.Serial {
		t.Errorf("sent again, it was answered %+v, want the answer %+v", again, first)
	}
}

// TestStep_FarAheadMayOnlyEndAnIntent sends steps far ahead of the clock. An
// intent may not begin there, but a decided one is finished, since its names
// stay locked until then. Neither moves the node's clock.
func TestStep_FarAheadMayOnlyEndAnIntent(t *testing.T) {
	for _, c := range []struct {
		phase   pb.Step_Phase
		ahead   time.Duration
		refused bool
	}{
		{pb.Step_BEGIN, time.Hour, true}, {pb.Step_PREPARE, time.Hour, true},
		{pb.Step_BEGIN, 10 * time.Second, false}, {pb.Step_PREPARE, 10 * time.Second, false},
		{pb.Step_COMMIT, time.Hour, false}, {pb.Step_ABORT, time.Hour, false}, {pb.Step_FINISH, time.Hour, false},
	} {
		s := newSingle(t)
		far := hlc.FromWall(time.Now().Add(c.ahead))
		got := s.hand(1, nil, &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{Phase: c.phase, Hlc: uint64(far)}}})
		s.settle()
		if fault.Is(got.Err, fault.ClockSkew) != c.refused {
			t.Errorf("%v, %v ahead: got %+v, want refused: %v", c.phase, c.ahead, got, c.refused)
		}
		if last := s.o.HLC.Last(); last >= far {
			t.Errorf("%v, %v ahead: the node's clock is at %v now", c.phase, c.ahead, last)
		}
	}
}

// TestLoop_DoesNotFormatALostState drops a slice's rows. A copy that was lost
// looks like a slice that was never used, but its log does not.
func TestLoop_DoesNotFormatALostState(t *testing.T) {
	s := newSingle(t)
	made := s.create("x", 1)
	s.settle()
	if made.Err != nil {
		t.Fatal(made.Err)
	}
	b := s.meta.NewBatch()
	if err := b.DropSlice(theSlice); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	var serial ids.Serial
	s.Do(func(core *replica.Node, _ replica.Time) { serial, _ = core.Next(theSlice) })
	s.settle()
	s.Format(theSlice, 1, func(err error) { t.Errorf("it was answered: %v", err) })
	s.settle()
	if len(s.fatal) != 1 || !strings.Contains(s.fatal[0].Error(), invariant.FormatEmpty) {
		t.Errorf("got %v, want the node to stop because of %q", s.fatal, invariant.FormatEmpty)
	}
	s.Do(func(core *replica.Node, _ replica.Time) {
		if next, _ := core.Next(theSlice); next != serial {
			t.Errorf("the log went on to %d from %d", next, serial)
		}
	})
}
