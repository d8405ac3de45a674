package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/availability"
)

func TestAvailability_PredictsFromFiguresOfOnesOwn(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "own.yaml")
	if err := os.WriteFile(file, []byte("nodes: 6\nsites: 2\npolicies: [{level: 2, sites: 2}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := do(t, "availability", file, "--out", folder, "--set", "disks=4")
	words := strings.Join(strings.Fields(r.out), " ") // columns are as wide as they need
	for _, say := range []string{"Expected in a year", "disks 4 --set", "nodes 6 " + file, "node_outage 10m default", "run: " + folder} {
		if !strings.Contains(words, say) || r.code != 0 {
			t.Errorf("got %+v, want code 0 and %q", r, say)
		}
	}
	r = do(t, "--json", "availability", file, "--out", folder, "--policy", "3/2", "--policy", "1")
	var v struct {
		Folder  string `json:"folder"`
		Figures struct {
			Policies []availability.Estimate `json:"policies"`
		} `json:"figures"`
	}
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.code != 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
	f := availability.Defaults()
	f.Nodes, f.Sites = 6, 2
	want, err := availability.Predict(f, availability.Policy{Level: 3, Sites: 2})
	if err != nil || len(v.Figures.Policies) != 2 || v.Figures.Policies[0] != want || !strings.HasPrefix(v.Folder, folder) {
		t.Errorf("got %+v, want %+v: %v", v, want, err)
	}
}

func TestAvailability_NamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		words []string
		code  int
		say   string
	}{
		{[]string{"--set", "node_failures=-1"}, fault.ExitUsage, `node_failures: "-1" is no number from 0`},
		{[]string{"--set", "nodez=1"}, fault.ExitUsage, `did you mean "nodes"?`},
		{[]string{"--policy", "13"}, fault.ExitUsage, "add nodes, or lower the level"},
		{[]string{"none.yaml"}, fault.ExitNotFound, "there is no such file"},
	} {
		for _, before := range [][]string{{"availability"}, {"--json", "availability"}} {
			r := do(t, append(append(before, "--out", t.TempDir()), c.words...)...)
			if r.code != c.code || !strings.Contains(r.err, c.say) || r.out != "" {
				t.Errorf("%q: got %+v, want code %d and %q", c.words, r, c.code, c.say)
			}
		}
	}
}
