package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/runs"
)

func sample() Result {
	t := Table{Name: "times", Title: "Times", Columns: []Column{
		{Name: "operation"}, {Name: "ours", Unit: "ms"}, {Name: "theirs", Unit: "ms", Source: "Somebody's page"}, {Name: "limit", Unit: "ms"},
	}}
	t.Add(Text("put | get"), Number(104.25), Number(109), None())
	t.Add(Text("delete"), Number(0.012345), Number(217))
	t.Add(Text("counted"), Count(12345), Number(math.NaN()), Number(0))
	line := Line{Name: "tokyo", X: []float64{0, 1, 2, 3, 4}, Y: []float64{10, 12, math.NaN(), 0, 11}}
	return Result{
		Title: "A sample", SetUp: "Three sites.", Notes: []string{"One was slow."}, Tables: []Table{t},
		Plots: []Plot{
			{
				Name: "overtime", Title: "Over time", X: Axis{Label: "time, s"}, Y: Axis{Label: "operations, /s", FromZero: true},
				Lines: []Line{line, {Name: "paris", X: line.X, Y: []float64{9, 9, 8, 7, 7}, Dashed: true}},
				Marks: []Mark{{Name: "limit", Y: 14}}, Bands: []Band{{Name: "tokyo off", From: 1.5, To: 3}},
			},
			{Name: "logarithmic", Title: "Log", X: Axis{Label: "n", Log: true}, Y: Axis{Label: "s", Log: true}, Lines: []Line{line}},
			{Name: "bars", Title: "Bars", Y: Axis{Label: "ms", FromZero: true}, Groups: []string{"put", "get"}, Bars: []Bar{{"ours", []float64{3, 4}}, {"theirs", []float64{5, math.NaN()}}}},
			{Name: "empty", Title: "Nothing", X: Axis{Label: "n", Log: true}, Y: Axis{Label: "s"}},
		},
	}
}

// tables is the sample without its plots, which take their time.
func tables() Result {
	r := sample()
	r.Plots = nil
	return r
}

func folder(t *testing.T) *Folder {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f, err := New(Options{
		Parent: t.TempDir(), Experiment: "sample", Arguments: []string{"cartwheel-testbed", "run", "sample"}, Seed: 7,
		Topology: []byte("sites: []\n"), Version: "v1", Wall: func() time.Time { at = at.Add(time.Second); return at },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func read(t *testing.T, f *Folder, name string) string {
	t.Helper()
	data, err := os.ReadFile(f.Path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFolder_HoldsWhatRepeatsTheRun(t *testing.T) {
	f := folder(t)
	l, err := f.Log("tokyo/node")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(l, "hello\n"); err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.Finish(tables(), &out); err != nil {
		t.Fatal(err)
	}
	if got := read(t, f, "logs/node.log"); got != "hello\n" {
		t.Errorf("the log holds %q", got)
	}
	if got := read(t, f, TopologyFile); got != "sites: []\n" {
		t.Errorf("the topology is %q", got)
	}
	var run Run
	if err := json.Unmarshal([]byte(read(t, f, RunFile)), &run); err != nil {
		t.Fatal(err)
	}
	if run.Seed != 7 || run.Experiment != "sample" || run.Seconds <= 0 || run.Versions.Cartwheel != "v1" ||
		run.Versions.Go == "" || run.Versions.Kernel == "" || strings.Join(run.Arguments, " ") != "cartwheel-testbed run sample" {
		t.Errorf("run.json lacks something: %+v", run)
	}
	if !strings.Contains(out.String(), read(t, f, TextFile)) || !strings.Contains(out.String(), f.Dir()) {
		t.Errorf("what is printed is not the table and the folder:\n%s", out.String())
	}
}

func TestTable_SaysWhatWasNotMeasured(t *testing.T) {
	f := folder(t)
	if err := f.Finish(sample(), io.Discard); err != nil {
		t.Fatal(err)
	}
	text := read(t, f, TextFile)
	for _, want := range []string{
		"operation  ours, ms  theirs, ms [1]  limit, ms",
		"put | get       104             109          -",
		"delete       0.0123             217          -",
		"counted       12345               -          0",
		"[1] not measured here: Somebody's page", "Note: One was slow.", "Seed 7, v1,", "Repeat: cartwheel-testbed run sample",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	md := read(t, f, MarkdownFile)
	for _, want := range []string{"| put \\| get | 104 | 109 | - |", "| --- | ---: | ---: | ---: |", "![Over time](overtime.svg)"} {
		if !strings.Contains(md, want) {
			t.Errorf("the page lacks %q:\n%s", want, md)
		}
	}
}

func TestFigures_AreKeptWhole(t *testing.T) {
	f := folder(t)
	if err := f.Finish(tables(), io.Discard); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Run    Run     `json:"run"`
		Tables []Table `json:"tables"`
	}
	if err := json.Unmarshal([]byte(read(t, f, FiguresFile)), &got); err != nil {
		t.Fatal(err)
	}
	rows := got.Tables[0].Rows
	if rows[1][1] != Number(0.012345) || rows[0][3] != None() || rows[2][2] != None() || rows[0][0] != Text("put | get") || got.Run.Seed != 7 {
		t.Errorf("got %+v of run %+v", rows, got.Run)
	}
}

func TestPlots_AreWrittenAsPNGAndSVG(t *testing.T) {
	f := folder(t)
	r := sample()
	if err := f.Finish(r, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Plots {
		img, err := png.Decode(strings.NewReader(read(t, f, p.Name+".png")))
		if err != nil || img.Bounds().Dx() < 800 {
			t.Errorf("%s.png: %v", p.Name, err)
		}
		svg := read(t, f, p.Name+".svg")
		d := xml.NewDecoder(strings.NewReader(svg))
		for err = nil; err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s.svg: %v", p.Name, err)
		}
		for _, want := range []string{p.Title, p.Y.Label} {
			if !strings.Contains(svg, want) {
				t.Errorf("%s.svg lacks %q", p.Name, want)
			}
		}
	}
	for _, want := range []string{"tokyo", "paris", "limit", "tokyo off"} {
		if !strings.Contains(read(t, f, "overtime.svg"), ">"+want+"<") {
			t.Errorf("the legend lacks %q", want)
		}
	}
}

func TestPlots_RefuseBarsOnALogarithmicAxis(t *testing.T) {
	p := Plot{Name: "bars", Y: Axis{Log: true}, Groups: []string{"a"}, Bars: []Bar{{Name: "x", Y: Values{5}}}}
	if err := (&Folder{}).plot(p); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want that it is invalid", err)
	}
}

func TestFinish_SaysThatARunIsVoid(t *testing.T) {
	f := folder(t)
	r := tables()
	r.Void, r.Earlier = "the emulator was 3 ms late", []string{"void: it was 9 ms late"}
	if err := f.Finish(r, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read(t, f, TextFile), "VOID, these figures do not count: the emulator was 3 ms late") || f.Run().Void == "" ||
		!strings.Contains(read(t, f, TextFile), "attempt 1 was void: it was 9 ms late") || len(f.Run().Earlier) != 1 {
		t.Error("nothing says that the run is void")
	}
}

func TestNew_RunsDoNotShareAFolder(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := Options{Parent: filepath.Join(t.TempDir(), "runs"), Experiment: "x", Wall: func() time.Time { return at }}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if a.Dir() == b.Dir() {
		t.Errorf("both are %s", a.Dir())
	}
	if _, err := New(Options{Parent: t.TempDir(), Experiment: "a/b"}); err == nil {
		t.Error("a name with a slash was taken")
	}
}

func TestLogTicks_EndOnRoundFigures(t *testing.T) {
	for _, c := range []struct{ v, down, up float64 }{{1, 1, 1}, {3, 2, 5}, {0.07, 0.05, 0.1}, {1.5, 1, 2}, {999, 500, 1000}, {20, 20, 20}} {
		if down, up := roundDown(c.v), roundUp(c.v); math.Abs(down/c.down-1) > 1e-9 || math.Abs(up/c.up-1) > 1e-9 {
			t.Errorf("%v: got %v and %v, want %v and %v", c.v, down, up, c.down, c.up)
		}
	}
	labels := 0
	for _, tick := range (logTicks{}).Ticks(1, 100) {
		if tick.Label != "" {
			labels++
		}
	}
	if labels != 7 {
		t.Errorf("from 1 to 100 there are %d labels, want 7", labels)
	}
}

// The console reads what this package writes, by a reader of its own.
func TestFolder_IsReadByTheConsole(t *testing.T) {
	dir := t.TempDir()
	f, err := New(Options{Parent: dir, Experiment: "garage", Arguments: []string{"cartwheel-testbed", "run", "garage"}, Seed: 7, Version: "v1",
		Topology: []byte("name: two\nsites:\n  - {name: oslo}\n")})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(f.Dir())
	if r, err := runs.New(dir).Run(name); err != nil || r.State != runs.Unfinished {
		t.Errorf("before its end: got %+v, %v", r, err)
	}
	table := Table{Name: "t", Columns: []Column{{Name: "case"}, {Name: "p50", Unit: "ms"}}}
	table.Add(Text("put"), Number(1.5))
	plot := Plot{Name: "cdf", Title: "Latency", Lines: []Line{{Name: "a", X: Values{1, 2}, Y: Values{1, 2}}}}
	if err := f.Finish(Result{Title: "x", Tables: []Table{table}, Plots: []Plot{plot}, Void: "late"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	r, err := runs.New(dir).Run(name)
	if err != nil || r.State != runs.Void || r.Reason != "late" || r.Topology != "two" || r.Seed != "7" || len(r.Tables) != 1 || r.Tables[0].Rows[0][1] != 1.5 {
		t.Errorf("got %+v, %v", r, err)
	}
	if len(r.Figures) != 1 || r.Figures[0].Title != "Latency" || len(r.KeyResults) != 1 {
		t.Errorf("got figures %+v, key results %+v", r.Figures, r.KeyResults)
	}
}
