package experiments

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func wordcountEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := wordcount().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values}
}

func TestWordcount_RefusesNonsense(t *testing.T) {
	for name, values := range map[string][]string{
		"files": {"7", "0", "all"}, "bytes": {"0", "1e9"}, "rounds": {"0", "NaN"}, "lease": {"0.1", "99"}, "rtt": {"0", "-1", "Inf"},
	} {
		for _, v := range values {
			if p, err := planWordcount(wordcountEnv(t, map[string]string{name: v})); !fault.Is(err, fault.Usage) {
				t.Errorf("%s=%s gave %+v, %v; want an error of usage", name, v, p, err)
			}
		}
	}
}

func TestWordcount_ComparesBothKinds(t *testing.T) {
	p, err := planWordcount(wordcountEnv(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	run := func(round int, second int64, ends ...int64) wordcountRow {
		r := wordcountRow{Round: round, Right: true, Merged: load.WordResult{Began: 0, Ended: 5e5, Words: 1000, Distinct: 10}}
		r.Each = []load.WordResult{{Began: 15e5, Ended: 2e6}, {Began: 1e6, Ended: 1e6 + second*1e6, Ends: ends}}
		return r
	}
	killed := time.UnixMicro(2e6)
	bad := run(1, 9, 2e6, 9e6, 3e6)
	bad.Killed, bad.Done, bad.Right = &killed, 40, false
	r := wordcountReport(p, []wordcountRow{run(1, 4, 2e6), bad, run(2, 6, 2e6)})
	want(t, published(t, r), "| 1 | undisturbed | - | 4.00 | 0.5 | 1.00 | 1000 | 10 | right |", "| 1 | active killed | 40 | 9.00 | 0.5 | 6.00 | 1000 | 10 | WRONG |",
		"| 3 | 5.00 | 9.00 | 4.00 | 80.0 | 1 | 0 | map 28 % shorter than over Boom-FS |", "not measured here: CFS with MAMS")
	if plot := r.Plots[0]; len(plot.Lines) != 2 || len(plot.Lines[1].X) != 3 || plot.Lines[1].X[2] != 8 || len(plot.Bands) != 1 || plot.Bands[0].From != 1 {
		t.Errorf("the plot is %+v, want a line for each kind, with times in order, and the kill", plot)
	}
}
