package tree

import (
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/protocol/pb"
)

// moving begins a rename from slice 1 to a directory in slice 2 and returns
// its coordinator, which has locked all and is about to decide.
func (d *desk) moving() *Coordinator {
	d.t.Helper()
	dir := d.across(2, "far", TypeDir|0o755)
	d.make(super, "/near", TypeRegular|0o644)
	c := d.context(d.places[1], super)
	k := NewCoordinator(c, &pb.Operation{TimeNs: int64(c.Time), Op: &pb.Operation_Rename{Rename: &pb.Rename{
		Dir: uint64(rootID), Name: []byte("near"), NewDir: uint64(dir), NewName: []byte("moved")}}})
	for k.phase != deciding {
		if k.Done() {
			d.t.Fatalf("the rename ended with %v before its decision", k.Result())
		}
		d.round(k)
	}
	return k
}

// round does one round of a coordinator.
func (d *desk) round(k *Coordinator) {
	actions := k.Next()
	answers := make([]Answer, len(actions))
	for i := range actions {
		answers[i] = d.act(actions[i])
	}
	k.Answer(answers)
}

// openIntent is the one intent that slice 1 has applied and not finished.
func (d *desk) openIntent() OpenIntent {
	d.t.Helper()
	open, err := OpenIntents(d.places[1].state)
	if err != nil || len(open) != 1 {
		d.t.Fatalf("got %d open intents, %v; want one", len(open), err)
	}
	return open[0]
}

// moved checks where the file of moving is: in one of the two directories.
func (d *desk) moved(want bool) {
	d.t.Helper()
	_, err := Lookup(d.places[1].over, rootID, []byte("near"))
	if near := err == nil; near == want || !near && !fault.Is(err, fault.NotFound) {
		d.t.Errorf("near: %v, want it to be moved: %v", err, want)
	}
	_, err = Lookup(d.places[2].over, d.id("/far"), []byte("moved"))
	if moved := err == nil; moved != want || !moved && !fault.Is(err, fault.NotFound) {
		d.t.Errorf("far/moved: %v, want it to be moved: %v", err, want)
	}
}

func TestResume_FinishesADecidedIntent(t *testing.T) {
	d := &desk{newWorld(t, 1, 2), t}
	k := d.moving()
	d.flush(d.places[1])
	open := d.openIntent()
	d.act(k.Next()[0]) // the decision is proposed; its answer is lost
	resumed := Resume(d.context(d.places[1], Principal{}), open)
	for !resumed.Done() {
		d.round(resumed)
	}
	if !resumed.Overruled() {
		t.Error("the resumed intent does not say that it was decided meanwhile")
	}
	d.flush(d.places[1])
	resumed = Resume(d.context(d.places[1], Principal{}), d.openIntent())
	for !resumed.Done() {
		d.round(resumed)
	}
	d.moved(true)
}

func TestResume_LeavesAnAbortedIntentUndecided(t *testing.T) {
	d := &desk{newWorld(t, 1, 2), t}
	k := d.moving()
	d.flush(d.places[1])
	resumed := Resume(d.context(d.places[1], Principal{}), d.openIntent())
	d.round(resumed)
	if got := d.act(k.Next()[0]); fault.Kind(got.Result.GetKind()) != fault.Stale {
		t.Errorf("the decision after the end: got %v, want stale", got.Result)
	}
	d.flush(d.places[1])
	if open := d.openIntent(); open.Decided || !open.GivenUp {
		t.Errorf("got %+v, want an intent that was given up", open)
	}
	for !resumed.Done() {
		d.round(resumed)
	}
	d.flush(d.places[1])
	if open, err := OpenIntents(d.places[1].state); err != nil || len(open) != 0 {
		t.Errorf("got %v, %v; want no open intent", open, err)
	}
	d.moved(false)
}

// TestResume_JournalsTheEndFirst checks the order in which a coordinator that
// took over an intent sends its steps.
func TestResume_JournalsTheEndFirst(t *testing.T) {
	d := &desk{newWorld(t, 1, 2), t}
	d.moving()
	d.flush(d.places[1])
	resumed := Resume(d.context(d.places[1], Principal{}), d.openIntent())
	for _, want := range []struct {
		slice ids.Slice
		phase pb.Step_Phase
	}{{1, pb.Step_ABORT}, {2, pb.Step_ABORT}, {1, pb.Step_FINISH}} {
		got := resumed.Next()
		if len(got) != 1 || got[0].Slice != want.slice || got[0].Step.GetPhase() != want.phase {
			t.Fatalf("got %v, want %v at slice %d", got, want.phase, want.slice)
		}
		d.round(resumed)
	}
	d.moved(false)
}

func TestStep_FinishNeedsADecision(t *testing.T) {
	d := &desk{newWorld(t, 1, 2), t}
	k := d.moving()
	var err error
	func() {
		defer invariant.Catch(func(e error) { err = e })
		d.act(Action{Slice: 1, Step: &pb.Step{Intent: uint64(k.Intent()), Phase: pb.Step_FINISH}})
	}()
	if err == nil || !strings.Contains(err.Error(), invariant.FinishDecided) {
		t.Errorf("got %v, want a violation of %q", err, invariant.FinishDecided)
	}
}

// TestCoordinator_TakesAnEarlierOutcome answers a decision with the outcome of
// an earlier attempt. The coordinator applies nothing.
func TestCoordinator_TakesAnEarlierOutcome(t *testing.T) {
	d := &desk{newWorld(t, 1, 2), t}
	k := d.moving()
	earlier := &pb.Result{Serial: 77}
	k.Answer([]Answer{{Result: earlier, Known: true}})
	for !k.Done() {
		d.round(k)
	}
	if k.Result() != earlier {
		t.Errorf("got %v, want the earlier outcome", k.Result())
	}
	d.moved(false)
}
