package experiments

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/testbed/coordinates"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

var zero = time.UnixMicro(1_000_000_000_000_000)

// at makes an event that ended so many milliseconds after zero.
func at(ms int, err string) load.Event {
	return load.Event{Op: load.OpCreate, At: zero.UnixMicro() + int64(ms)*1000 - 500, Took: 500, Err: err}
}

// steady are events of one site: so many a second, but for the seconds off.
func steady(seconds, perSecond int, off func(second int) bool) []load.Event {
	var out []load.Event
	for s := range seconds {
		for i := range perSecond {
			if !off(s) {
				out = append(out, at(1000*s+i*1000/perSecond+1, ""))
			}
		}
	}
	return out
}

func TestRecovery_IsWhenTheRateStaysUp(t *testing.T) {
	events := steady(60, 20, func(s int) bool { return s >= 20 && s < 34 || s == 35 })
	v := rates(events, zero, time.Minute)
	back, until := zero.Add(30*time.Second), zero.Add(time.Minute)
	if got := recovery(events, back, until, 20); math.Abs(got-5.4) > 0.11 { // 80 % of 3 s from 35.4 on
		t.Errorf("got %v s, want 5.4: one second of 34 is no return", got)
	}
	if got := recovery(events, back, until, 40); !math.IsNaN(got) {
		t.Errorf("got %v s, want none: it never was at 40", got)
	}
	if got := median(between(v, zero, zero, zero.Add(20*time.Second))); got != 20 {
		t.Errorf("the calm rate is %v, want 20", got)
	}
	if got := mean(between(v, zero, zero.Add(20*time.Second), back)); got != 0 {
		t.Errorf("the rate while off is %v, want 0", got)
	}
}

func TestStall_IsTheLongestTimeWithoutAnAnswer(t *testing.T) {
	events := steady(60, 10, func(s int) bool { return s >= 22 && s < 27 })
	events = append(events, at(25000, "timed out")) // that was no answer
	got := stall(events, zero.Add(20*time.Second), zero.Add(40*time.Second))
	if math.Abs(got-5.1) > 0.11 {
		t.Errorf("got %v s, want about 5.1", got)
	}
	if got := stall(events, zero, zero.Add(23*time.Second)); math.Abs(got-1.1) > 0.11 { // from 21.9 s on
		t.Errorf("got %v s, want about 1.1: the rest of the stall is behind the end", got)
	}
	if got := stall(nil, zero, zero.Add(7*time.Second)); got != 7 {
		t.Errorf("nothing at all: got %v s, want 7", got)
	}
}

func TestQuantile_IsOfWhatThereIs(t *testing.T) {
	v := []float64{5, 1, 4, 2, 3}
	if median(v) != 3 || quantile(v, 0.9) != 5 || quantile(v, 0) != 1 || median(v[:4]) != 3 || !math.IsNaN(median(nil)) || !math.IsNaN(quantile(nil, 0.5)) {
		t.Error("a quantile is wrong")
	}
	if v[0] != 5 {
		t.Error("the values were moved")
	}
}

func TestSettings_RefuseNonsense(t *testing.T) {
	for _, list := range []string{"", "a", "1,", "-1", "NaN", "2000"} {
		if got, err := numbers(list, 0, 1000); err == nil {
			t.Errorf("%q gave %v", list, got)
		}
	}
	x := blackout()
	for _, set := range []map[string]string{{"off": "60"}, {"off": "0"}, {"minutes": "0"}, {"workers": "none"}} {
		values, err := x.Fill(set)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := planBlackout(&experiment.Env{Values: values}); err == nil {
			t.Errorf("%v was taken", set)
		}
	}
}

func TestForecast_ComparesWhatIsFarEnough(t *testing.T) {
	rows := []forecastRow{
		{PredictedRead: 100, MeasuredRead: 110, PredictedWrite: 200, MeasuredWrite: 150, MeasuredCreate: 200},
		{PredictedRead: 0.1, MeasuredRead: 4, PredictedWrite: 50, MeasuredWrite: 50, MeasuredCreate: 40},
	}
	got := forecastErrors(rows)
	if len(got) != 5 || math.Abs(got[0]-0.1) > 1e-9 || got[1] != 0.25 || got[2] != 0 || got[3] != 0 || math.Abs(got[4]-0.2) > 1e-9 {
		t.Errorf("got %v, want 0.1, 0.25, 0, 0 and 0.2: a read at the active's own site is not compared", got)
	}
	if page := published(t, forecastReport(rows, forecastSize{rounds: 3, moves: 1})); !strings.Contains(page, "| 5 | 10.0 | 25.0 |") {
		t.Errorf("the page does not tell of 5 compared figures and their errors:\n%s", page)
	}
	for _, set := range []map[string]string{{"rounds": "0"}, {"moves": "0"}, {"settle": "-1"}, {"settle": "long"}} {
		values, err := forecast().Fill(set)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := forecastSizes(&experiment.Env{Values: values}); err == nil {
			t.Errorf("%v was taken", set)
		}
	}
}

func TestTopologies_OfExperimentsAreValid(t *testing.T) {
	for name, yaml := range map[string]string{"pipe": pipeYAML, "saturate": saturateYAML, "blackout": blackoutYAML, "forecast": forecastYAML, "pings": pingsYAML} {
		if top, err := described(name, yaml); err != nil || len(top.Hosts) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	top, err := treeTopology(100)
	if err != nil || top.RTT("home", "here") != 100*time.Millisecond || top.Nodes() != 4 {
		t.Errorf("kerneltree: %+v, %v", top, err)
	}
	p, err := planScalability(scalabilityEnv(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if top, err := p.topology(); err != nil || len(top.Sites) != 9 || top.Sites[0].Name != scalabilityServer || top.RTT("s01", "s08") != 100*time.Millisecond {
		t.Errorf("scalability: %+v, %v", top, err)
	}
	live, err := liveTopology(&experiment.Env{Values: map[string]string{}}, 16)
	if err != nil || len(live.Sites) != 16 {
		t.Errorf("live: %v", err)
	}
}

func TestAttempts_RepeatAVoidOne(t *testing.T) {
	failed := errors.New("failed")
	for _, tc := range []struct {
		name     string
		attempts []string // what each says, "" counts
		final    bool
		err      error
		made     int
		want     outcome
	}{
		{"the first counts", []string{""}, false, nil, 1, outcome{}},
		{"the second counts", []string{"late", ""}, false, nil, 2, outcome{"", []string{"late"}}},
		{"none counts", []string{"late", "later"}, false, nil, 2, outcome{"later", []string{"late"}}},
		{"something was lost", []string{"late"}, true, nil, 1, outcome{"late", nil}},
		{"it failed", []string{"late"}, false, failed, 1, outcome{"late", nil}},
	} {
		made, said := 0, 0
		got, err := repeat(2, func() (string, bool, error) {
			made++
			return tc.attempts[made-1], tc.final, tc.err
		}, func(string) { said++ })
		if !errors.Is(err, tc.err) || made != tc.made || said != tc.made-1 || got.void != tc.want.void || !slices.Equal(got.earlier, tc.want.earlier) {
			t.Errorf("%s: got %+v, %v after %d attempts, said %d times", tc.name, got, err, made, said)
		}
	}
}

// published finishes a report and returns its page.
func published(t *testing.T, r report.Result) string {
	t.Helper()
	f, err := report.New(report.Options{Parent: t.TempDir(), Experiment: "x", Version: "v"})
	if err == nil {
		err = f.Finish(r, io.Discard)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Plots {
		for _, end := range []string{".svg", ".png"} {
			if _, err := os.Stat(f.Path(p.Name + end)); err != nil {
				t.Error(err)
			}
		}
	}
	page, err := os.ReadFile(f.Path(report.MarkdownFile))
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range bytes.Split(page, []byte("\n")) {
		if bytes.Contains(l, []byte("NaN")) {
			t.Errorf("line %d: %s", i+1, l)
		}
	}
	return string(page)
}

func want(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(page, l) {
			t.Errorf("the page lacks %q:\n%s", l, page)
		}
	}
}

func TestGarage_ComparesMedians(t *testing.T) {
	rows := []garageRow{{garageWay{Name: "mount"}, load.ObjectResult{Put: []float64{100, 110, 120}, Get: []float64{1, 2, 3}, List: []float64{4}, Delete: []float64{101, 99}}}}
	want(t, published(t, garageReport(rows, load.ObjectOptions{Count: 3, Bytes: 10})),
		"| mount | put | 110 | 120 | 120 | 3 | 109 | 100 | 115 |", "| mount | get | 2.00 |", "| mount | list | 4.00 |", "| 217 | 100 | 115 |", "not measured here: Garage")
}

func TestKerneltree_CountsRoundTripsAFile(t *testing.T) {
	var rows []treeRow
	for _, w := range load.TreeWorks() {
		rows = append(rows, treeRow{RTT: 22, Layout: "home only", TreeResult: load.TreeResult{Work: w, Workers: 16, Files: 50, Seconds: 2},
			Counts: []count{{Kind: "create", Count: 50, WAN: 100, MostWAN: 3}, {Kind: "flush", Count: 50}}})
	}
	page := published(t, treeReport(rows, load.Tree{Files: make([]string, 50)}))
	want(t, page, "| 22.0 | home only | 16 workers | copy | 25.0 | 2.00 | 2.00 | - | 300 |", "| create | 50 | 100 | 2.00 | 3 |")
	if strings.Contains(page, "| flush |") {
		t.Error("operations without round trips are listed")
	}
	rows[0].Counts, rows[0].Workers = nil, 0
	want(t, published(t, treeReport(rows[:1], load.Tree{})), "| one by one | copy | 25.0 | 2.00 | - | 5-10 | 25.0 |", "do not count round trips")
}

func TestPipe_SaysHowFullTheLineWas(t *testing.T) {
	var rows []pipeRow
	for _, loss := range []float64{0, 0.001} {
		for _, way := range []string{"write", "read"} {
			rows = append(rows, pipeRow{Loss: loss, Way: way, StreamResult: load.StreamResult{Bytes: 200e6, Seconds: 10}, LineAt: report.Values{1, 2}, Line: report.Values{150, 170}})
		}
	}
	want(t, published(t, pipeReport(rows, 200e6, []float64{0, 0.001})), "| 0 | write | 1 | 160 | 80.0 | 80.0 | 0.4-8 | 100 | 80.0 |", "| 0.1 | read | 1 | 160 | 80.0 | 80.0 | - | 100 | 60.0 |")
}

func TestSaturate_ReportsWhatWasLost(t *testing.T) {
	rows := []saturateRow{
		{Control: "reno", Sessions: load.SessionResult{RTT: []float64{300, 310}}, Beacons: []float64{301}},
		{Control: "reno", Full: true, Sessions: load.SessionResult{RTT: []float64{400, 700}, Failed: 1, Lapsed: 2}, Lapsed: 3, Parts: 4, Out: 18, In: 17},
	}
	want(t, published(t, saturateReport(rows, time.Minute)),
		"| reno | full | keep-alive | 550 | 700 | 700 | 2 | 1 | 300 | 1000 |", "| reno | full | 3 | 2 | 4 | 18.0 | 17.0 |")
}

func TestLoggedAt_ReadsTheTimeOfALine(t *testing.T) {
	at, ok := loggedAt(`time=2026-01-02T03:04:05.678Z level=INFO msg="a session lapsed" node=x`)
	if want := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC); !ok || !at.Equal(want) {
		t.Errorf("got %v, %v; want %v", at, ok, want)
	}
	if _, ok := loggedAt("sending what is unsent (1s)"); ok {
		t.Error("a line without a time has one")
	}
}

func TestBlackout_ReportsWhatWasLost(t *testing.T) {
	p := blackoutPlan{times: 1, every: 40 * time.Second, off: 10 * time.Second, calm: 20 * time.Second, workers: 1, bytes: 1}
	records := []siteRecord{
		{Site: "a", Verdict: load.Verdict{Acknowledged: 10, Unknown: 1, Reads: 5, Lost: []string{"f: is not there"}}, events: steady(60, 10, func(s int) bool { return s >= 20 && s < 33 })},
		{Site: "b", Verdict: load.Verdict{Acknowledged: 20}, events: steady(60, 10, func(int) bool { return false })},
	}
	outages := []outage{{Site: "a", Off: zero.Add(20 * time.Second), Back: zero.Add(30 * time.Second)}}
	want(t, published(t, blackoutReport(p, zero, records, outages)),
		"| a | 10 | 1 | 5 | 1 | 0 |", "| all | 30 | 1 | 5 | 1 | 0 |", "| 1: a | a | 10.0 | 0 | 13.0 | 2.40 | minutes | 5.00 |", "| 1: a | b | 10.0 | 10.0 | 0.1 | 0 | minutes | 5.00 |")
}

func TestCoordinates_CompareOnTheirOwnNetwork(t *testing.T) {
	s := coordinates.Result{Cases: []coordinates.Case{
		{Name: ours, Space: planetlab, Nodes: 490, Final: coordinates.Accuracy{MedianError: 0.07, P90Error: 0.3}, Series: []coordinates.Point{{Seconds: 5, MedianError: 0.2}, {Seconds: 10, MedianError: 0.07}}},
		{Name: ours, Space: "cities", Nodes: 10, Final: coordinates.Accuracy{MedianError: 0.08}},
		{Name: "10 % lie: mixed", Space: planetlab, Liars: 0.1, Final: coordinates.Accuracy{MedianError: 0.0805}},
		{Name: "10 % lie, plain: mixed", Space: planetlab, Liars: 0.1, Final: coordinates.Accuracy{MedianError: math.NaN()}},
	}}
	r := coordinatesReport(s)
	v := 33.0
	l := liveResult{Hosts: 2, Links: []liveLink{{From: "a", To: "b", Predicted: &v, True: 30}, {From: "b", To: "a", True: 30}}}
	l.Series = []livePoint{pointOf(l.Links, 5)}
	l.addTo(&r)
	page := published(t, r)
	want(t, page, "| 8-D + height | PlanetLabData_18 | 490 | 0.07 | 0.3 |", "| 0.083 / 0.402; 92.6 / 78.9 | 0.080 / 0.38; 95 / 85 |", "| 8-D + height | cities | 10 | 0.08 | 0 |",
		"| 10 % lie: mixed | 10.0 | 0.0805 | 0.07 | 15.0 | at most 10 |", "| 2 | 5.00 | 1 | 2 | 0.1 | 0.1 | 0 |")
	if strings.Count(page, "0.080 / 0.38") != 1 {
		t.Error("figures of one network stand beside another's")
	}
}
