package command

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/drill"
)

func TestDrillText_TellsPausesAndLosses(t *testing.T) {
	r := &drill.Record{ID: "20261127T093000Z-beef", Kind: drill.KillActive, Path: "/reports", By: "ann", AtNS: time.Date(2026, 11, 27, 9, 30, 0, 0, time.Local).UnixNano(),
		LastedMS: 15_040, Stopped: drill.Time, Why: "it lasted as long as it was to", WritePauseMS: 3870, ReadPauseMS: 3912, Acknowledged: 410, WholeMS: 1250,
		Streams: []drill.Stream{{Site: "oslo", WritePauseMS: 3870, ReadPauseMS: 3912, UsualMS: 61, Acknowledged: 210, Reads: 230},
			{Site: "rome", WritePauseMS: 3790, ReadPauseMS: 3801, UsualMS: 102, Acknowledged: 200, Reads: 220}}}
	want := `SITE  USUAL   WRITES PAUSED  READS PAUSED  ACKNOWLEDGED  LOST  READS
oslo  61 ms   3870 ms        3912 ms       210           0     230
rome  102 ms  3790 ms        3801 ms       200           0     220

Recovery time (RTO): 3870 ms for writes, 3912 ms for reads.
Recovery point (RPO): 0 of 410 acknowledged writes lost.
Drill 20261127T093000Z-beef (kill-active of /reports) lasted 15.0 s: it lasted as long as it was to.
Every slice was whole again 1.2 s later.
`
	var out strings.Builder
	if drillText(&out, r); out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	r.Lost, r.WholeMS = 2, -1
	out.Reset()
	drillText(&out, r)
	for _, part := range []string{"2 of 410 acknowledged writes lost", "/reports/drill-20261127T093000Z-beef: keep them", "`cartwheel status` tells"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("got\n%s\nwant %q in it", out.String(), part)
		}
	}
	out.Reset()
	if drillsText(&out, []drill.Record{*r}); !strings.Contains(out.String(), "2026-11-27 09:30:00  kill-active of /reports  ann  15.0 s  3870 ms        3912 ms       2 of 410  time\n") {
		t.Errorf("got\n%s", out.String())
	}
	out.Reset()
	if drillsText(&out, nil); out.String() != "no drills yet\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestDrillVerdict_FailsUnlessItLastedAndLostNothing(t *testing.T) {
	for stop, want := range map[drill.Stop]int{drill.Time: fault.ExitOK, drill.Interrupted: fault.Canceled.ExitCode(), drill.Pause: fault.TimedOut.ExitCode(),
		drill.Wrong: fault.ExitCorrupt, drill.Members: fault.ExitUnavailable, drill.Failing: fault.ExitUnavailable} {
		if got := fault.ExitCode(drillVerdict(&drill.Record{Stopped: stop})); got != want {
			t.Errorf("%s: status %d, want %d", stop, got, want)
		}
	}
}

func TestDrillOptions_ReadTheWords(t *testing.T) {
	for name, x := range map[string]struct {
		words drillCmd
		path  string
		want  fault.Kind
	}{
		"a path in the tree": {drillCmd{KillActive: "/reports/", For: time.Second, StopAfter: time.Second}, "/reports", fault.None},
		"the root":           {drillCmd{GeoConfig: true, For: time.Second, StopAfter: time.Second}, "/", fault.None},
		"a path of a cut":    {drillCmd{Cut: "oslo", Path: "/a/../b", For: time.Second, StopAfter: time.Second}, "/b", fault.None},
		"what is no path":    {drillCmd{KillActive: "none", For: time.Second, StopAfter: time.Second}, "", fault.NotFound},
		"nothing":            {drillCmd{}, "", fault.Usage},
	} {
		o, err := x.words.options()
		if fault.KindOf(err) != x.want || err == nil && o.Path != x.path {
			t.Errorf("%s: got %q, %v, want %q, %v", name, o.Path, err, x.path, x.want)
		}
	}
}
