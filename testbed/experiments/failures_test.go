package experiments

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/load"
)

func failuresEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := failures().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values}
}

func TestFailures_RefusesNonsense(t *testing.T) {
	for name, values := range map[string][]string{
		"leases": {"", "0", "long", "3,"}, "faults": {"", "burn", "kill,"}, "rtt": {"0", "NaN"}, "calm": {"0", "-1"},
		"away": {"8", "0", "Inf"}, "after": {"0", "soon"}, "workers": {"0", "0.5"}, "bytes": {"0", "none"},
	} {
		for _, v := range values {
			if p, err := planFailures(failuresEnv(t, map[string]string{name: v})); !fault.Is(err, fault.Usage) {
				t.Errorf("%s=%s gave %+v, %v; want an error of usage", name, v, p, err)
			}
		}
	}
}

func TestFailures_PutsGeoConfigWhereNothingFails(t *testing.T) {
	p, err := planFailures(failuresEnv(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	top, err := p.topology(p.leases[1])
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Sites) != failuresSites || top.Lease != time.Second || top.GeoConfig != "s5-1" || top.RTT(failuresHome, "s5") != 20*time.Millisecond {
		t.Errorf("got %d sites, lease %v, geo-config at %s", len(top.Sites), top.Lease, top.GeoConfig)
	}
}

func TestFailures_BringBackWhatFailed(t *testing.T) {
	for _, k := range failuresKinds() {
		do := k.verbs()
		if back := map[lab.Verb]lab.Verb{lab.Kill: lab.Start, lab.Stop: lab.Start, lab.Pause: lab.Start, lab.Unplug: lab.Plug}[do[0]]; back == "" || do[1] != back {
			t.Errorf("%s does %v", k, do)
		}
		if k.hitsTwo() && do[0] != lab.Kill {
			t.Errorf("%s does %v, want two that are killed", k, do)
		}
	}
	p := failuresPlan{calm: 10 * time.Second, away: 30 * time.Second, after: 5 * time.Second}
	for k, want := range map[failuresKind]time.Duration{failuresKill: 45 * time.Second, failuresTwo: time.Minute, failuresRestart: 25 * time.Second} {
		if got := p.length(k); got != want {
			t.Errorf("the writers of %s work for %v, want %v", k, got, want)
		}
	}
}

func TestFailures_ReportsGapsAndLosses(t *testing.T) {
	p := failuresPlan{leases: []time.Duration{time.Second}, away: 10 * time.Second}
	whole := zero.Add(34 * time.Second)
	events := steady(45, 10, func(s int) bool { return s >= 20 && s < 24 })
	events = append(events, load.Event{Op: load.OpRead, At: zero.Add(22 * time.Second).UnixMicro(), Took: 1000}) // a cache answers
	rows := []failuresRow{
		{Lease: time.Second, Kind: failuresKill, Began: zero, Failed: zero.Add(20 * time.Second), Back: zero.Add(30 * time.Second), Ended: zero.Add(45 * time.Second), Whole: &whole,
			Verdict: load.Verdict{Acknowledged: 410, Unknown: 1, Files: 40, Lost: []string{"f: is not there"}}, changes: changes(events)},
		{Lease: time.Second, Kind: failuresOfFive, Began: zero, Failed: zero.Add(20 * time.Second), Back: zero.Add(30 * time.Second), Ended: zero.Add(45 * time.Second),
			changes: steady(45, 10, func(int) bool { return false })},
	}
	r := failuresReport(p, rows)
	page := published(t, r)
	want(t, page, "| 1.00 | kill | 9.97 | 6.00 | 10.0 | 4001 | 0.5 | 4.00 | 5.4-6.8 | - |", "| 1.00 | two-of-five | 9.97 | 10.0 | 10.0 | 100 | 0.5 | - | - | slight dip; hardly visible |",
		"| 1.00 | kill | 410 | 1 | 40 | 1 | 0 |", "not measured here: CFS with MAMS", "not measured here: BeanFS")
	if len(r.Plots) != 1 || len(r.Plots[0].Lines) != 2 || r.Plots[0].Lines[0].X[0] != -20 {
		t.Errorf("the plots are %+v, want one with two lines from 20 s before the failure", r.Plots)
	}
	if strings.Contains(page, "pause |") {
		t.Error("a failure is listed that was not made")
	}
}

func TestFailures_CountsAnOperationThatSpansTheEnd(t *testing.T) {
	events := []load.Event{at(1000, ""), {Op: load.OpCreate, At: zero.UnixMicro(), Took: 9e6}, at(8000, "")}
	if got := longest(events, zero, zero.Add(9*time.Second)); got != 9000 {
		t.Errorf("the longest operation took %v ms, want 9000", got)
	}
	if got := rate(events, zero, zero.Add(2*time.Second)); got != 0.5 {
		t.Errorf("the rate is %v, want 0.5", got)
	}
}
