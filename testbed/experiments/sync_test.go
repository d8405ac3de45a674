package experiments

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func syncEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := syncExperiment().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values}
}

func TestSync_RefusesNonsense(t *testing.T) {
	for name, values := range map[string][]string{
		"missed": {"", "0", "some", "10,"}, "objects": {"0", "1e9"}, "lease": {"0", "0.1", "99", "NaN"}, "rtt": {"0", "-1"}, "workers": {"0", "0.5", "1000"},
	} {
		for _, v := range values {
			if p, err := planSync(syncEnv(t, map[string]string{name: v})); !fault.Is(err, fault.Usage) {
				t.Errorf("%s=%s gave %+v, %v; want an error of usage", name, v, p, err)
			}
		}
	}
	p, err := planSync(syncEnv(t, map[string]string{"missed": "30,10"}))
	if err != nil || p.missed[0] != 10 || p.failures.away != 3*p.lease() {
		t.Errorf("got %+v, %v; want the fewest first, and the active away for three leases", p, err)
	}
}

func TestSync_ReadsTheReturnInTheLog(t *testing.T) {
	log := `time=2026-01-02T03:04:00.000Z level=INFO msg="part in a slice" node=x slice=2 was=none is=junior epoch=1
time=2026-01-02T03:04:05.000Z level=INFO msg="part in a slice" node=x slice=2 was=none is=standby epoch=3
time=2026-01-02T03:04:05.100Z level=INFO msg="part in a slice" node=x slice=22 was=none is=junior epoch=3
time=2026-01-02T03:04:05.200Z level=INFO msg="part in a slice" node=x slice=5 was=none is=standby epoch=3
time=2026-01-02T03:04:06.000Z level=INFO msg="part in a slice" node=x slice=2 was=none is=junior epoch=5
time=2026-01-02T03:04:06.400Z level=INFO msg="part in a slice" node=x slice=2 was=junior is=standby epoch=6
`
	start := time.Date(2026, 1, 2, 3, 4, 4, 0, time.UTC)
	junior, normal, err := returnIn(strings.NewReader(log), 2, start)
	if err != nil || junior.Sub(start) != 2*time.Second || normal.Sub(start) != 2400*time.Millisecond {
		t.Errorf("got %v and %v, %v; want 2 s and 2.4 s after the start", junior, normal, err)
	}
	for _, id := range []ids.Slice{3, 5} { // one that the log does not name, and one that was no junior
		if junior, normal, _ := returnIn(strings.NewReader(log), id, start); !junior.IsZero() || !normal.IsZero() {
			t.Errorf("slice %d became %v and %v", id, junior, normal)
		}
	}
}

func TestSync_ReportsReturnsAndTakeovers(t *testing.T) {
	p, err := planSync(syncEnv(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(v float64) *float64 { return &v }
	whole := zero.Add(32 * time.Second)
	missed := []syncMissed{
		{Files: 100, Entries: 210, MB: 0.4, Ready: 0.1, Junior: seconds(1), Normal: seconds(1.05), Whole: seconds(1.2)},
		{Files: 10000, Entries: 21000, MB: 41, Ready: 0.1},
	}
	sizes := []syncSize{{Planted: 1000, Objects: 1016, Failure: failuresRow{
		Began: zero, Failed: zero.Add(20 * time.Second), Back: zero.Add(30 * time.Second), Ended: zero.Add(40 * time.Second), Whole: &whole,
		Verdict: load.Verdict{Acknowledged: 360, Lost: []string{"x"}}, changes: steady(40, 10, func(s int) bool { return s >= 20 && s < 24 || s >= 33 && s < 39 }),
	}}}
	r := syncReport(p, missed, sizes)
	want(t, published(t, r), "| 100 | 210 | 0.4 | 0.1 | 1.00 | 1.05 | 50.0 | 1.20 | - | proportional to k |", "| 10000 | 21000 | 41.0 | 0.1 | - | - | - | - | 22.8 | proportional to k |",
		"| 1000 | 1016 | 4001 | 3600 | 2.00 | 360 | 1 | 0 | 5.4-6.8, flat in size | 2.8-142, with size |", "not measured here: HDFS")
	if lines := r.Plots[0].Lines; len(lines) != 2 || len(lines[0].X) != 1 {
		t.Errorf("the lines are %+v, want only the return that was seen", lines)
	}
}
