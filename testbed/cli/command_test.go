package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

// ran is what a command said.
type ran struct {
	out, err string
	code     int
}

func do(t *testing.T, words ...string) ran {
	t.Helper()
	var out, err bytes.Buffer
	code := Run(context.Background(), append([]string{"cartwheel-testbed"}, words...), Stdio{Out: &out, Err: &err, Version: "v1"})
	return ran{out.String(), err.String(), code}
}

func TestList_NamesWhatComesUp(t *testing.T) {
	var listed struct {
		Topologies []struct {
			Name  string `json:"name"`
			Hosts int    `json:"hosts"`
		} `json:"topologies"`
	}
	r := do(t, "list", "--json")
	if err := json.Unmarshal([]byte(r.out), &listed); err != nil || r.code != 0 || len(listed.Topologies) < 4 {
		t.Fatalf("got %+v, %v", r, err)
	}
	for _, one := range listed.Topologies {
		var dry dryRun
		r := do(t, "--json", "up", one.Name, "--dry-run")
		if err := json.Unmarshal([]byte(r.out), &dry); err != nil || r.code != 0 || len(dry.Hosts) != one.Hosts {
			t.Errorf("%s: got %+v, %v; want %d hosts", one.Name, r, err, one.Hosts)
		}
	}
}

func TestUp_DryRunPrintsATopologyThatReadsBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "again.yaml")
	first := do(t, "up", "cities:tokyo,boston", "--dry-run", "--seed", "9")
	if err := os.WriteFile(file, []byte(first.out), 0o600); err != nil {
		t.Fatal(err)
	}
	if second := do(t, "up", file, "--dry-run"); second != first || !strings.Contains(first.out, "seed: 9") {
		t.Errorf("got %+v, want %+v", second, first)
	}
}

func TestArguments_WrongOnesAreNamedWithARemedy(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("sites:\n  - name: a\nwan: {rate: 0 Mbps}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words []string
		code  int
		say   string
	}{
		{[]string{"upp"}, fault.ExitUsage, "--help"},
		{[]string{"up", "three-d", "--dry-run"}, fault.ExitNotFound, `did you mean "three-dc"?`},
		{[]string{"up", bad, "--dry-run"}, fault.ExitUsage, bad + ":3: 0 Mbps: a rate is above 0"},
		{[]string{"up", "three-dc", "--dry-run", "--hosts=-1"}, fault.ExitUsage, "--hosts"},
	} {
		if r := do(t, c.words...); r.code != c.code || !strings.Contains(r.err, c.say) {
			t.Errorf("%q: got %+v, want code %d and %q", c.words, r, c.code, c.say)
		}
	}
}
