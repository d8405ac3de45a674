package trial

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

// A demo that only says it is ready: what Run starts, it ends and removes.
const fakeDemo = `#!/bin/sh
mkdir -p "$3"
echo '{"contact":"c","sites":[{"name":"one","mount":"'"$3"'/one"}]}' > "$3/demo.json"
trap 'echo ended > "$0.ended"; exit 0' TERM
echo starting
echo "ready; go"
while :; do sleep 0.05; done
`

func TestRun_EndsAndRemovesItsDemo(t *testing.T) {
	bin, in := t.TempDir(), t.TempDir()
	program := filepath.Join(bin, "cartwheel")
	if err := os.WriteFile(program, []byte(fakeDemo), 0o755); err != nil {
		t.Fatal(err)
	}
	seen := ""
	err := Run(context.Background(), Options{Bin: bin, In: in, Progress: &bytes.Buffer{}}, func(d *Demo) error {
		seen = d.Sites[0].Name
		return fault.E(fault.Corrupt, "", "", "as planned")
	})
	if !fault.Is(err, fault.Corrupt) || seen != "one" {
		t.Errorf("got %v and site %q, want what the measurement said", err, seen)
	}
	if _, err := os.Stat(program + ".ended"); err != nil {
		t.Errorf("the demo was not ended in order: %v", err)
	}
	if left, _ := os.ReadDir(in); len(left) != 0 {
		t.Errorf("%d things were left behind", len(left))
	}
}
