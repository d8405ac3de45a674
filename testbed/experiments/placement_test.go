package experiments

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/desktops"
	"cartwheel.dev/testbed/experiment"
)

func placementEnv(t *testing.T, set map[string]string) *experiment.Env {
	t.Helper()
	values, err := placementExperiment().Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Env{Seed: 1, Values: values}
}

func TestPlacement_RefusesNonsense(t *testing.T) {
	for name, values := range map[string][]string{
		"seeds": {"0", "1.5", "101", "some"}, "moves": {"", "2", "0.2,x"}, "months": {"0", "NaN", "100"}, "desktops": {"1", "2.5", "1e9"},
		"full": {"-1", "50"}, "disk-gb": {"0", "NaN"}, "fill": {"1", "-0.1"}, "copies": {"0", "4"}, "coherence": {"-1", "NaN", "1e12"},
		"locality": {"-1", "NaN"}, "login-days": {"0", "1.5"}, "opens": {"0", "Inf"}, "files": {"0", "1e7", "90000"},
	} {
		for _, v := range values {
			_, err := planPlacement(placementEnv(t, map[string]string{name: v}))
			if !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%s: got %v, want an error that names it", name, v, err)
			}
		}
	}
}

func TestPlacement_HasThePapersSetUp(t *testing.T) {
	p, err := planPlacement(placementEnv(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if p.Desktops != 50 || p.Full != 5 || p.DiskBytes != 10e9 || p.Fill != 0.5 || p.Copies != 3 || p.Months != 8 || p.seeds != 5 || len(p.moves) != 3 || len(p.variants) == 0 {
		t.Errorf("got %+v", p)
	}
}

func TestPlacement_ComparesPolicies(t *testing.T) {
	p, err := planPlacement(placementEnv(t, map[string]string{"seeds": "2", "moves": "0.2"}))
	if err != nil {
		t.Fatal(err)
	}
	p.variants = p.variants[:1]
	outcome := func(policy desktops.Policy, local, near, refused int) desktops.Outcome {
		r := desktops.Reads{Primary: local, Secondary: near, Remote: 100 - local - near, Missing: 25}
		return desktops.Outcome{Policy: policy, Weeks: []desktops.Reads{r, {}}, All: r, Writes: 200, Refused: refused, Counts: desktops.Counts{Moved: 7, Elsewhere: 20}}
	}
	row := func(variant string, seed uint64, random, lru int) placementRow {
		f := desktops.Facts{Opens: 9, ByKind: map[string]int{"read": 8}, Followed: 0.98, Own: 0.25}
		return placementRow{variant, desktops.Result{Seed: seed, Move: 0.2, Facts: f, Outcomes: []desktops.Outcome{
			outcome(desktops.BeeRandom, random, 2, 0), outcome(desktops.BeeLRU, lru, 2, 0), outcome(desktops.CartwheelSites, 60, 5, 50),
		}}}
	}
	rows := []placementRow{row("", 1, 70, 74), row("", 2, 80, 82), row(p.variants[0].name, 1, 50, 55)}
	want(t, published(t, placementReport(p, rows)),
		"| 0.2 | BeeFS, random leaves | 75.0 | 70.0 | 80.0 | 77.0 | 72.0 | 82.0 | 0 | 20.0 | at least 75 |",
		"| 0.2 | Cartwheel, each desktop a site | 60.0 | 60.0 | 60.0 | 65.0 | 65.0 | 65.0 | 25.0 | 20.0 | - |",
		"| 0.2 | -3.00 | -4.00 | -2.00 | no significant difference |", "| 0.2 | BeeFS, LRU leaves | 0 | 7.00 | 10.0 | 0 | 0 |",
		"| locality 0.7 | 0.2 | 55.0 | 57.0 | 25.0 | at least 75 |", "not measured here: BeeFS")
	weeks := placementWeeks(placementGroups(p, "", rows)).Lines
	if len(weeks) != 2 || len(weeks[1].Y) != 1 || weeks[1].Y[0] != 78 {
		t.Errorf("got the lines %+v, want two with the mean of one week", weeks)
	}
}

// TestPlacement_RunsShort runs it as a person would, on few desktops.
func TestPlacement_RunsShort(t *testing.T) {
	env := placementEnv(t, map[string]string{"desktops": "8", "full": "1", "seeds": "1", "files": "50"})
	env.Parent, env.Short, env.Version, env.Out, env.Progress = t.TempDir(), true, "v", io.Discard, io.Discard
	if err := runPlacement(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(env.Parent, "placement-*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("it left the folders %v: %v", folders, err)
	}
	complete(t, folders[0], false)
}
