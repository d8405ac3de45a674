package coordinates

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/vivaldi"
)

var (
	planetlab = flag.String("planetlab", os.Getenv("CARTWHEEL_PLANETLAB"), "matrix of 490 PlanetLab hosts")
	clouds    = flag.String("clouds", os.Getenv("CARTWHEEL_CLOUDS"), "folder of *_matrix.csv")
	only      = flag.String("only", "", "cases of TestRun_MakesTheFigures, separated by semicolons")
	rounds    = flag.Int("rounds", 0, "probes of each node")
	largest   = flag.Int("large", 0, "nodes of the large case")
	out       = flag.String("result", "", "file to write the result of TestRun_MakesTheFigures to")
)

func play(t *testing.T, s setting) *world {
	t.Helper()
	w, err := newWorld(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func small() setting {
	return setting{space: NewCities(100, 1), config: vivaldi.Default(), rounds: 400, period: 5 * time.Second, join: 64, seed: 1}
}

func TestBudget_HoldsInSyntheticCities(t *testing.T) {
	a := play(t, small()).accuracy(true)
	plain := small()
	plain.plain = true
	b := play(t, plain).accuracy(true)
	if a.MedianError > 0.13 || a.P90Error > 0.35 {
		t.Errorf("relative error %.3f / %.3f, want at most 0.13 / 0.35", a.MedianError, a.P90Error)
	}
	if a.MedianError > b.MedianError || a.Coordinates.Of8 < b.Coordinates.Of8 {
		t.Errorf("got %+v, worse than the plain algorithm: %+v", a, b)
	}
	if a.Probed.Of8 < a.Measured.Of8 || a.Measured.Of8 < a.Coordinates.Of8 {
		t.Errorf("measuring makes choices worse: %+v", a)
	}
}

func TestLiars_HonestNodesBearThem(t *testing.T) {
	base := play(t, small()).accuracy(true).MedianError
	for _, l := range Lies() {
		s := small()
		s.liars, s.lie = 0.1, l
		got := play(t, s).accuracy(true).MedianError
		// The budget of 10 % is held on measured networks (TestRun_MakesTheFigures); here
		// are few nodes for a short time.
		if got > 1.5*base {
			t.Errorf("%s: median error %.4f, without liars %.4f", l, got, base)
		}
		s.plain = true
		if bare := play(t, s).accuracy(true).MedianError; l == Far && bare < 2*got {
			t.Errorf("%s: the plain algorithm bears it too (%.4f): the lie is none", l, bare)
		}
	}
}

// TestPartition_HalvesFindTogether joins two halves that lived apart. Each lies
// turned and mirrored in the eyes of the other. Their nodes must hear of the
// other half, and must take it for what it is.
func TestPartition_HalvesFindTogether(t *testing.T) {
	for _, seed := range []uint64{1, 4} {
		s := small()
		s.space, s.seed = NewCities(120, seed), seed
		s.rounds = 700
		always := play(t, s).accuracy(true).MedianError
		s.apart, s.measure = 500, 500
		w, err := newWorld(s)
		if err != nil {
			t.Fatal(err)
		}
		var before, after float64
		err = w.run(t.Context(), func() { before, after = after, w.accuracy(true).MedianError })
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("seed %d: median error %.3f while apart, %.3f after 200 rounds together, %.3f without", seed, before, after, always)
		if before < 1.9*always {
			t.Errorf("seed %d: median error %.3f while apart: the halves were not apart", seed, before)
		}
		if after > 1.3*always {
			t.Errorf("seed %d: median error %.3f, 200 rounds after the halves joined; %.3f had they never been apart", seed, after, always)
		}
	}
}

func TestRun_ReplaysFromItsSeed(t *testing.T) {
	o := Options{Seed: 7, Rounds: 30, Nodes: 60, Only: []string{"plain 2-D + height", "8-D + height", "10 % lie: mixed", "partition"}}
	run := func(o Options) Result {
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Cases {
			r.Cases[i].Cost = Cost{}
		}
		return r
	}
	a, b := run(o), run(o)
	if !reflect.DeepEqual(a, b) {
		t.Error("two runs of one seed differ")
	}
	o.Seed = 8
	if c := run(o); reflect.DeepEqual(a.Cases, c.Cases) {
		t.Error("runs of two seeds do not differ")
	}
	if _, err := json.Marshal(a); err != nil {
		t.Error(err)
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := Run(ctx, Options{}); !errors.Is(err, enough) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestMatrix_RefusesWhatIsNone(t *testing.T) {
	for _, tt := range []struct{ name, text, says string }{
		{"not square", "0 1 2\n1 0 2\n", "2 rows of 3"},
		{"ragged", "0 1\n1 0 2\n", "line 2"},
		{"too many rows", "0 1\n1 0\n1 1\n", "line 3"},
		{"negative", "0 1\n-1 0\n", `line 2: "-1"`},
		{"not a number", "0 1\nNaN 0\n", "line 2"},
		{"infinite", "0 Inf\n1 0\n", "line 1"},
		{"words", "0 1\n1 far\n", `"far"`},
		{"empty", "", "0 rows"},
	} {
		_, err := readMatrix(strings.NewReader(tt.text))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want Invalid with %q", tt.name, err, tt.says)
		}
	}
	m, err := readMatrix(strings.NewReader("region,a,b\na,0,4\nb,6,0\n"))
	if err != nil || m.Size() != 2 || m.RTT(0, 1) != 5 || m.RTT(1, 0) != 5 {
		t.Errorf("a matrix with names: %v, %v", m, err)
	}
	if _, err := OpenMatrix(filepath.Join(t.TempDir(), "none")); !fault.Is(err, fault.NotFound) {
		t.Errorf("no file: %v", err)
	}
}

// TestRun_MakesTheFigures makes the figures of docs/coordinates.md. Without the
// data it says how to get there.
func TestRun_MakesTheFigures(t *testing.T) {
	if *planetlab == "" {
		t.Skip("needs -planetlab=FILE or CARTWHEEL_PLANETLAB: a matrix of PlanetLab round-trip times, which is not shipped")
	}
	o := Options{Seed: 1, PlanetLab: *planetlab, Large: *largest}
	o.Rounds = *rounds
	if *only != "" {
		o.Only = strings.Split(*only, ";")
	}
	if *clouds != "" {
		o.Clouds, _ = filepath.Glob(filepath.Join(*clouds, "*_matrix.csv"))
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var clean float64
	for _, c := range r.Cases {
		f := c.Final
		t.Logf("%-42s %-22s %.4f %.3f | %.1f %.1f | %.1f %.1f | %.1f %.1f | %.1f%% %5.0f ns %6.0f B %4.1f B/s centre %.0f", c.Name, c.Space, f.MedianError, f.P90Error,
			100*f.Coordinates.Of3, 100*f.Coordinates.Of8, 100*f.Measured.Of3, 100*f.Measured.Of8, 100*f.Probed.Of3, 100*f.Probed.Of8,
			100*f.MeasuredPairs, c.Cost.NsSample, c.Cost.NodeBytes, c.Cost.TrafficBps, c.Series[len(c.Series)-1].Centre)
		switch {
		case c.Name == "8-D + height":
			clean = f.MedianError
			if f.MedianError > 0.068 || f.P90Error > 0.23 || f.Coordinates.Of8 < 0.90 || f.Probed.Of3 < 0.99 || f.Probed.Of8 < 0.97 {
				t.Errorf("out of budget: %+v", f)
			}
		case c.Name == "partition" && clean > 0 && f.MedianError > 1.1*clean:
			t.Errorf("%s: median error %.4f, %.4f without", c.Name, f.MedianError, clean)
		case strings.HasPrefix(c.Name, "10 % lie: ") && clean > 0 && f.MedianError > 1.1*clean:
			t.Errorf("%s: median error %.4f, %.4f without liars", c.Name, f.MedianError, clean)
		}
	}
	if *out != "" {
		data, err := json.MarshalIndent(r, "", " ")
		if err == nil {
			err = os.WriteFile(*out, data, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestResult_WritesNaNAsNull encodes figures that are no numbers. The plain
// algorithm ends there among liars. Its figures must not keep the others from
// being written.
func TestResult_WritesNaNAsNull(t *testing.T) {
	r := Result{Cases: []Case{{
		Name: "plain", Final: Accuracy{MedianError: math.NaN(), P90Error: math.Inf(1), MeasuredPairs: 0.5},
		Series: []Point{{Seconds: 5, MedianError: math.NaN(), P90Error: 3, Centre: math.Inf(1)}},
	}}}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cases []struct {
			Final  map[string]any   `json:"final"`
			Series []map[string]any `json:"series"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(data, &got); err != nil || len(got.Cases) != 1 || len(got.Cases[0].Series) != 1 {
		t.Fatalf("%v: %s", err, data)
	}
	f, s := got.Cases[0].Final, got.Cases[0].Series[0]
	if v, ok := f["median_relative_error"]; !ok || v != nil || f["p90_relative_error"] != nil || f["measured_pairs"] != 0.5 || s["time_s"] != 5.0 ||
		s["median_relative_error"] != nil || s["p90_relative_error"] != 3.0 || s["centre_ms"] != nil {
		t.Errorf("got %s", data)
	}
}
