package experiments

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/availability"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/report"
)

func availabilityEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := availabilityExperiment().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values, Parent: t.TempDir(), Version: "v", Out: io.Discard, Progress: io.Discard}
}

// written is a file with a text.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAvailability_RefusesNonsense(t *testing.T) {
	for _, c := range []struct {
		name, value, say string
		kind             fault.Kind
	}{
		{"nodes", "-1", `nodes: "-1" is no whole number from 1`, fault.Usage},
		{"node_failures", "-0.5", "node_failures", fault.Usage},
		{"node_failures", "NaN", "node_failures", fault.Usage},
		{"site_outage", "-3h", "site_outage", fault.Usage},
		{"site_outage", "three", "site_outage", fault.Usage},
		{"copy_mb_per_s", "0", `copy_mb_per_s: "0" is no number from 0.001`, fault.Usage},
		{"runs", "1", "runs", fault.Usage},
		{"papers", "maybe", "neither yes nor no", fault.Usage},
		{"policies", "3/", "no policy", fault.Usage},
		{"policies", "3/0", "no policy", fault.Usage},
		{"policies", "3;2", "no policy", fault.Usage},
		{"policies", "13", "13 copies on 12 nodes", fault.Invalid},
		{"policies", "4/4", "add a site", fault.Invalid},
		{"sites", "13", "no more than there are nodes", fault.Invalid},
		{"site_outages", "1000", "site_outages: copies are missing", fault.Invalid},
		{"file", "none.yaml", "there is no such file", fault.NotFound},
		{"measured", "none.json", "there is no such file", fault.NotFound},
		{"file", written(t, "a.yaml", "nodes: 3\nnodez: 4\n"), `a.yaml:2: unknown key "nodez"`, fault.Invalid},
		{"file", written(t, "b.yaml", "policies:\n  - {level: 2, sites: 0}\n"), "b.yaml:2", fault.Invalid},
		{"file", written(t, "c.yaml", "\n- 1\n"), "c.yaml:2", fault.Invalid},
		{"measured", written(t, "a.json", `{"takeover": 3}`), "takeover_ms", fault.Invalid},
		{"measured", written(t, "b.json", `{"takeover_ms": -3}`), "takeover_ms is -3", fault.Invalid},
		{"measured", written(t, "c.json", `{"copy_bytes_per_s": 0}`), "above 0", fault.Invalid},
		{"measured", written(t, "d.json", `{} {}`), "more behind", fault.Invalid},
	} {
		env := availabilityEnv(t, map[string]string{c.name: c.value})
		err := runAvailability(t.Context(), env)
		if !fault.Is(err, c.kind) || !strings.Contains(fault.Explain(err), c.say) {
			t.Errorf("%s=%s: got %v, want an error that says %q", c.name, c.value, err, c.say)
		}
		if left, _ := os.ReadDir(env.Parent); len(left) > 0 {
			t.Errorf("%s=%s: it left %v", c.name, c.value, left)
		}
	}
}

func TestAvailability_TheLaterSourceCounts(t *testing.T) {
	file := written(t, "a.yaml", "nodes: 20\nsites: 4\ntakeover: 5s\nlease: 2s\ncopy_mb_per_s: 10\nslice_gb: 8\npolicies: [{level: 3, sites: 3}, {level: 2}]\n")
	measured := written(t, "m.json", `{"takeover_ms": 1300, "lease_ms": 1000, "resynchronization_ms": 250, "copy_bytes_per_s": 2e7}`)
	p, err := planAvailability(availabilityEnv(t, map[string]string{"file": file, "measured": measured, "lease": "4s", "papers": "no"}))
	if err != nil {
		t.Fatal(err)
	}
	want := availability.Defaults()
	want.Nodes, want.Sites, want.SliceBytes, want.CopyRate = 20, 4, 8e9, 2e7
	want.Takeover, want.Lease, want.Resynchronization = 1300*time.Millisecond, 4*time.Second, 250*time.Millisecond
	if p.Figures != want {
		t.Errorf("got %+v, want %+v", p.Figures, want)
	}
	if len(p.policies) != 2 || p.policies[0] != (availability.Policy{Level: 3, Sites: 3}) || p.policies[1] != (availability.Policy{Level: 2}) {
		t.Errorf("got the policies %v", p.policies)
	}
	if p.from["lease"] != "--set" || p.from["takeover"] != measured || p.from["nodes"] != file || p.from["repair"] != "" {
		t.Errorf("they are said to be from %v", p.from)
	}
}

// readReport reads the one run in a folder.
func readReport(t *testing.T, parent string, into any) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(parent, "availability-*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("there are the folders %v: %v", folders, err)
	}
	complete(t, folders[0], false)
	text, err := os.ReadFile(filepath.Join(folders[0], report.FiguresFile))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAvailability_PredictsWhatIsAskedFor(t *testing.T) {
	env := availabilityEnv(t, map[string]string{"papers": "no", "policies": "3/3,1,2", "nodes": "9"})
	if err := runAvailability(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	var r struct{ Figures availabilityFigures }
	readReport(t, env.Parent, &r)
	f := availability.Defaults()
	f.Nodes = 9
	for i, p := range []availability.Policy{{Level: 3, Sites: 3}, {Level: 1}, {Level: 2}} {
		want, err := availability.Predict(f, p)
		if err != nil || len(r.Figures.Policies) != 3 || r.Figures.Policies[i].Estimate != want {
			t.Errorf("got %+v, want %+v, %v", r.Figures.Policies, want, err)
		}
	}
	if r.Figures.Papers != nil || r.Figures.Assumptions != f {
		t.Errorf("got %+v", r.Figures)
	}
}

// TestAvailability_RunsShort plays the papers' set-ups, as a person would, and
// compares them with the papers.
func TestAvailability_RunsShort(t *testing.T) {
	env := availabilityEnv(t, nil)
	env.Short = true
	if err := runAvailability(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	var r struct{ Figures availabilityFigures }
	readReport(t, env.Parent, &r)
	papers := r.Figures.Papers
	if papers == nil || len(papers.Dead) != 14 || len(papers.Recoveries) != 3 || len(papers.Scatters) != 5 || len(papers.Rules) != 18 {
		t.Fatalf("got %+v", papers)
	}
	if x := papers.Recoveries[0]; x.Paper < 0.99*beanDead || x.Paper > 1.01*beanDead || !x.Played.Has(x.Overlap) || x.Overlap >= x.Paper {
		t.Errorf("BeanFS's harshest rates: %+v", x)
	}
	if x := papers.Chains[2]; x.Factor < cfsFactor || x.Factor > cfsFactor+1 {
		t.Errorf("CFS's two standbys: %+v", x)
	}
	missed := 0
	for _, x := range papers.Dead {
		if !x.Played.Has(x.Overlap) {
			missed++
		}
	}
	if missed > 1 {
		t.Errorf("%d of %d intervals miss the formulas: %+v", missed, len(papers.Dead), papers.Dead)
	}
}

func TestAvailability_WritesSharesWithTheirNines(t *testing.T) {
	for share, want := range map[float64]string{0.5: "50.000", 0.99965: "99.965", 0.9999983: "99.99983", 1: "100"} {
		if got := percentAvailable(share); got != want {
			t.Errorf("%v: got %s, want %s", share, got, want)
		}
	}
}
