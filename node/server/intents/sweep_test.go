package intents

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// sinceLoop leads every slice since a serial.
type sinceLoop struct{ since uint64 }

func (l sinceLoop) Published(id ids.Slice) *operate.Published {
	p := operate.NewPublished(id, replica.RoleLeading, nil, 0)
	p.Since = l.since
	return p
}

func (sinceLoop) Ask(context.Context, func(*replica.Node, replica.Time)) error { return nil }

func (sinceLoop) Uncommitted(context.Context, ids.Slice, ...[]byte) (bool, error) { return false, nil }

func TestIsOld_MeansBeforeThisLeadOrLongAgo(t *testing.T) {
	var now time.Duration
	r := New(Options{Loop: sinceLoop{since: 100}, StepTimeout: time.Second, Clock: func() time.Duration { return now }})
	before, young := tree.Intent(ids.RootObject), tree.Intent(uint64(ids.RootObject)+1000)
	if !r.isOld(before, ids.RootSlice) {
		t.Error("an intent from before this node led the slice is not old")
	}
	if r.isOld(young, ids.RootSlice) {
		t.Error("an intent of this lead is old at first sight")
	}
	if now = 999 * time.Millisecond; r.isOld(young, ids.RootSlice) {
		t.Error("an intent is old before a step's time is over")
	}
	if now = 1001 * time.Millisecond; !r.isOld(young, ids.RootSlice) {
		t.Error("an intent is not old after a step's time")
	}
}

func TestForgetUnseen_DropsWhatARoundDidNotMeet(t *testing.T) {
	r := New(Options{Loop: sinceLoop{}, Clock: func() time.Duration { return 0 }})
	r.isOld(1, 1)
	r.isOld(2, 1)
	r.forgetUnseen()
	r.isOld(2, 1)
	r.forgetUnseen()
	if got := r.Remembered(); got != 1 {
		t.Errorf("%d intents are remembered, want the one that was met again", got)
	}
}

func TestClaim_LeavesAnIntentToItsRunner(t *testing.T) {
	r := New(Options{})
	r.note(7)
	if r.claim(7) {
		t.Error("an intent that runs was claimed")
	}
	if r.forget(7); !r.claim(7) || r.claim(7) {
		t.Error("an intent is claimed once after it was forgotten")
	}
}
