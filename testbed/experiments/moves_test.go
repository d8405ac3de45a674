package experiments

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func movesEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := moves().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values}
}

func TestMoves_RefusesNonsense(t *testing.T) {
	for name, values := range map[string][]string{
		"objects": {"", "0", "1e9"}, "kinds": {"", "kill", "stop,"}, "lease": {"0", "99"}, "rtt": {"0", "NaN"}, "calm": {"0"}, "during": {"-1"}, "workers": {"0", "1e4"},
	} {
		for _, v := range values {
			if p, err := planMoves(movesEnv(t, map[string]string{name: v})); !fault.Is(err, fault.Usage) {
				t.Errorf("%s=%s gave %+v, %v; want an error of usage", name, v, p, err)
			}
		}
	}
}

func TestMoves_TellsGapsAndBytes(t *testing.T) {
	p, err := planMoves(movesEnv(t, map[string]string{"objects": "50", "kinds": "hand-over,stop"}))
	if err != nil {
		t.Fatal(err)
	}
	// Ten changes a second, but for two seconds from 12 s on.
	events := steady(30, 10, func(s int) bool { return s == 12 || s == 13 })
	row := func(k failuresKind, back int) movesRow {
		return movesRow{Planted: 50, Objects: 77, Move: failuresRow{Kind: k, Lease: 3 * time.Second, Began: zero, Failed: zero.Add(9 * time.Second),
			Back: zero.Add(time.Duration(back) * time.Second), Ended: zero.Add(30 * time.Second), Verdict: load.Verdict{Acknowledged: 280, Unknown: 1}, changes: events}}
	}
	near, far := row(movesHandOver, 10), row(movesStop, 5)
	bytes := int64(3e6)
	near.Moved = &bytes
	if during, before := near.gap(); during < 2000 || during > 2200 || before > 150 {
		t.Errorf("got gaps of %g and %g ms, want 2,000 and 100", during, before)
	}
	far.Move.Failed = zero.Add(4 * time.Second)
	if during, _ := far.gap(); during > 150 {
		t.Errorf("a move that ended long before has a gap of %g ms", during)
	}
	r := movesReport(p, []movesRow{near, far})
	want(t, published(t, r), "| 77 | hand-over | 1.00 | 3.00 |", "| 77 | the active's node stops | 1.00 | - |")
	if bars := r.Plots[0].Bars; len(bars) != 2 || len(bars[0].Y) != 1 {
		t.Errorf("the bars are %+v, want one for each move", bars)
	}
}
