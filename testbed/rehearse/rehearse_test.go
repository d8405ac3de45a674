package rehearse

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/topology"
	"cartwheel.dev/testbed/wan"
)

func TestReadFile_ReadsTheExamples(t *testing.T) {
	files, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, f := range files {
		if _, err := ReadFile(f, 1); err != nil {
			t.Error(err)
		}
	}
}

func TestParse_PlanIsWhatItsFileSays(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "two.yaml"), []byte("sites: [{name: a, nodes: 2}, {name: b, clients: 1}]\nwan: {rtt: 5 ms}\nmounts: clients\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Parse(filepath.Join(dir, "x.yaml"), []byte(`
topology: two.yaml
seed: 9
work:
  - {name: one, hosts: mounts, run: a}
  - {name: two, hosts: [nodes, b-c1], run: b, at: 2 s, for: 3 s, every: 10 ms, limit: 1 s}
faults:
  - {at: 5 s, kill: b-1, what: [node, mount]}
  - {at: 1 s, cut: [a, b], one_way: true}
  - {at: 2 s, set: [a, b], loss: 1 %, delay: 7 ms}
  - {at: 3 s, blackout: b, down: 1 s, every: 2 s}
  - {at: 4 s, heal: all}
checks:
  - {host: a-2, run: c}
`), 1)
	if err != nil {
		t.Fatal(err)
	}
	if p.Topology.Seed != 9 || p.Name != "two" {
		t.Errorf("got seed %d, name %q", p.Topology.Seed, p.Name)
	}
	if one := p.Work[0]; !slices.Equal(one.Hosts, []string{"b-c1"}) || one.Times != 1 || one.Limit != defaultLimit {
		t.Errorf("got %+v", one)
	}
	if two := p.Work[1]; !slices.Equal(two.Hosts, []string{"a-1", "a-2", "b-1", "b-c1"}) || two.Times != 0 || two.For != 3*time.Second || two.Every != 10*time.Millisecond {
		t.Errorf("got %+v", two)
	}
	var said []string
	for _, s := range p.Faults {
		said = append(said, s.At.String()+" "+s.Fault.String())
	}
	want := []string{"1s cut a b one way", "2s set a b delay 7ms loss 0.01", "3s blackout b 1s of every 2s", "4s heal", "5s kill b-1 node mount"}
	if !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
	if len(p.Checks) != 1 || p.Checks[0].Host != "a-2" {
		t.Errorf("got %+v", p.Checks)
	}
}

func TestParse_NamesFileAndLineOfABadPlan(t *testing.T) {
	const head = "topology: two-cities\nwork:\n  - {name: w, hosts: all, run: x}\n"
	for _, c := range []struct{ name, text, want string }{
		{"no topology", "work:\n  - {name: w, hosts: all, run: x}\n", "x.yaml:1|there is no topology"},
		{"no work", "topology: two-cities\n", "x.yaml:1|there is no work"},
		{"unknown topology", "topology: two-citys\nwork: []\n", `x.yaml:1|did you mean "two-cities"?`},
		{"a topology's own line", "topology:\n  sites:\n    - {name: a, nodse: 3}\nwork:\n  - {name: w, hosts: all, run: x}\n", `x.yaml:3|did you mean "nodes"?`},
		{"unknown key", head + "chekcs: []\n", `x.yaml:4|did you mean "checks"?`},
		{"unknown host", "topology: two-cities\nwork:\n  - {name: w, hosts: [hree], run: x}\n", `x.yaml:3|unknown host "hree"`},
		{"no host", "topology: two-cities\nwork:\n  - {name: w, run: x}\n", "x.yaml:3|names its hosts"},
		{"nothing to run", "topology: two-cities\nwork:\n  - {name: w, hosts: all}\n", "x.yaml:3|what to run"},
		{"work twice", head + "  - {name: w, hosts: all, run: y}\n", `x.yaml:4|there already, at line 3`},
		{"unknown site", head + "faults:\n  - {at: 1 s, cut: [here, thre]}\n", `x.yaml:5|did you mean "there"?`},
		{"no verb", head + "faults:\n  - {at: 1 s}\n", "x.yaml:5|a fault is one of"},
		{"two verbs", head + "faults:\n  - {at: 1 s, off: here, kill: there}\n", "x.yaml:5|a fault is one of"},
		{"time without unit", head + "faults:\n  - {at: 1, off: here}\n", "x.yaml:5|is no time"},
		{"loss above one", head + "faults:\n  - {at: 1 s, set: [here, there], loss: 2}\n", "x.yaml:5|from 0 to 1"},
		{"loss of a kill", head + "faults:\n  - {at: 1 s, kill: here, loss: 0.2}\n", "x.yaml:5|only set"},
		{"unknown process", head + "faults:\n  - {at: 1 s, kill: here, what: nod}\n", "x.yaml:5|is no process"},
		{"neither true nor false", head + "faults:\n  - {at: 1 s, cut: [here, there], one_way: maybe}\n", "x.yaml:5|neither true nor false"},
		{"check nowhere", head + "checks:\n  - {host: thre, run: x}\n", `x.yaml:5|unknown host "thre"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(c.text), 1)
			where, why, _ := strings.Cut(c.want, "|")
			if err == nil || !strings.Contains(err.Error(), where+": ") || !strings.Contains(err.Error(), why) {
				t.Errorf("got %v\nwant %s and %q", err, where, why)
			}
			if code := fault.ExitCode(err); code != fault.ExitUsage {
				t.Errorf("got exit code %d, want %d", code, fault.ExitUsage)
			}
		})
	}
}

func TestFigures_AreOfTheRunsThatThereWere(t *testing.T) {
	top, err := topology.Find("two-cities", topology.Draw{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rehearsal{
		Plan: &Plan{
			Name: "x", Topology: top, Work: []Work{{Name: "w", Hosts: []string{"here-1", "there-1"}}},
			Faults: []Step{{Fault: lab.Fault{Do: lab.Off}}, {Fault: lab.Fault{Do: lab.Heal}}, {Fault: lab.Fault{Do: lab.Off}}},
		},
		faults: []happened{{At: 1, What: "off"}, {At: 3, What: "heal", lifts: true}},
	}
	for i := range 4 { // ends at 1, 2, 3 and 9 s
		r.samples = append(r.samples, sample{Work: "w", Host: "here-1", At: float64(i), Seconds: 1})
	}
	r.samples[3].At = 8
	r.samples = append(r.samples, sample{Work: "w", Host: "here-1", At: 4, Seconds: 2, Failed: "why"})
	got := r.result(&wan.Stats{})
	var cells []string
	for _, c := range got.Tables[0].Rows[0] {
		cells = append(cells, c.String())
	}
	if want := []string{"w", "here-1", "5", "1", "1000", "2000", "2000", "6.00"}; !slices.Equal(cells, want) {
		t.Errorf("got %q, want %q", cells, want)
	}
	if none := got.Tables[0].Rows[1]; none[2].String() != "0" || none[4].String() != "-" {
		t.Errorf("a host without runs: got %v", none)
	}
	p := got.Plots[0]
	sum := 0.0
	for _, y := range p.Lines[0].Y {
		sum += y
	}
	if math.Abs(sum-4) > 1e-9 {
		t.Errorf("the line adds up to %v runs, want the 4 that succeeded", sum)
	}
	if len(p.Bands) != 1 || p.Bands[0].From != 1 || p.Bands[0].To != 3 {
		t.Errorf("got bands %+v, want one from 1 to 3", p.Bands)
	}
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "1 faults were not done") {
		t.Errorf("got notes %q", got.Notes)
	}
}
