package operate

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

func TestDo_SeesCoreAndMetadataAtOneSerial(t *testing.T) {
	s := newSingle(t)
	made := s.create("file", 1)
	s.settle()
	s.write(made.Result.Attr.Object, 2)
	s.wait(0)
	var before, core, rows ids.Serial
	before, _ = s.meta.Applied(theSlice)
	s.disk.finish(nil) // commits, in the turn that runs the call
	s.Do(func(c *replica.Node, _ replica.Time) {
		snapshot, _ := c.Snapshot(theSlice)
		core = snapshot.Serial
		rows, _ = s.meta.Applied(theSlice)
	})
	s.wait(0)
	if core <= before {
		t.Fatalf("the core is at %d, as before: nothing was committed in this turn; %v", core, s.fatal)
	}
	if core != rows {
		t.Errorf("the core is at serial %d and the metadata at %d", core, rows)
	}
}

func TestAppend_RefusalAlsoRefusesTheNext(t *testing.T) {
	s := newSingle(t)
	s.disk.refuse = fault.E(fault.IO, "test", "", "refused")
	first := s.create("first", 1)
	s.wait(0)
	second := s.create("second", 2)
	s.wait(0)
	if left := s.disk.finish(nil); len(left) != 0 {
		t.Errorf("%d records were appended behind the refused ones", len(left))
	}
	s.wait(0)
	if first.Err == nil || second.Err == nil {
		t.Errorf("an operation was acknowledged behind a refused append: %+v, %+v", first, second)
	}
	if len(s.fatal) == 0 {
		t.Error("nothing ends the node")
	}
}

func TestAppend_FailureIsFinal(t *testing.T) {
	s := newSingle(t)
	first := s.create("first", 1)
	s.wait(0)
	s.disk.finish(fault.E(fault.IO, "test", "", "failed"))
	second := s.create("second", 2)
	s.wait(0)
	s.disk.finish(nil)
	s.wait(0)
	if first.Err == nil || second.Err == nil {
		t.Errorf("an operation was acknowledged after a failed append: %+v, %+v", first, second)
	}
}

func TestApply_FailureLeavesNoHole(t *testing.T) {
	s := newSingle(t)
	made := s.create("file", 1)
	s.settle()
	before, _ := s.meta.Applied(theSlice)
	first := s.write(made.Result.Attr.Object, 2)
	s.wait(0)
	s.store.fail = fault.E(fault.IO, "test", "", "failed")
	s.disk.finish(nil)
	s.wait(0)
	if s.store.puts == 0 {
		t.Fatalf("the operation brought no chunks: %+v", first)
	}
	second := s.create("second", 3)
	s.settle()
	if after, _ := s.meta.Applied(theSlice); after != before {
		t.Errorf("the metadata is applied up to %d, behind an entry that failed at %d", after, before+1)
	}
	if first.Err == nil || second.Err == nil {
		t.Errorf("an operation was acknowledged behind one that could not be applied: %+v, %+v", first, second)
	}
}

func TestLoop_StopsOnAViolatedInvariant(t *testing.T) {
	s := newSingle(t)
	b := s.meta.NewBatch()
	if err := b.SetApplied(theSlice, 1); err != nil { // as if a state copied wrongly said so
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	s.Do(func(*replica.Node, replica.Time) { s.Snapshot(theSlice) })
	answer := s.create("file", 1)
	s.wait(0)
	s.disk.finish(nil)
	s.wait(0)
	if len(s.fatal) != 1 || !fault.Is(s.fatal[0], fault.Corrupt) {
		t.Errorf("got %v, want one corrupt state", s.fatal)
	}
	if answer.Err == nil {
		t.Errorf("an operation was acknowledged after the violation: %+v", answer)
	}
}

func TestLoop_AnswersNothingBeforeItFormats(t *testing.T) {
	s := newEmptySingle(t)
	a := s.create("early", 1)
	s.settle()
	if a.Refused == nil || a.Refused.Kind != uint32(fault.NotActive) {
		t.Errorf("an operation was answered with %+v, not told to come again", a)
	}
	for range 10 { // the lease is renewed meanwhile
		s.wait(time.Second)
		s.settle()
		if s.Published(theSlice).Serves(s.now) {
			t.Fatal("it serves reads")
		}
	}
	s.format()
	if !s.Published(theSlice).Serves(s.now) {
		t.Error("it does not serve reads once it is formatted")
	}
	a = s.create("early", 1)
	s.settle()
	if a.Refused != nil || a.Err != nil {
		t.Errorf("an operation was answered with %+v", a)
	}
}
