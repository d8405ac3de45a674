//go:build unix

package supervisor

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// spawn starts a shell that says it is ready, and does what end says once it is
// asked to stop. It may be silent for so long then.
func spawn(t *testing.T, within time.Duration, end string) *Child {
	t.Helper()
	f := New()
	t.Cleanup(f.Close)
	script := `trap '` + end + `' TERM; echo '{"ready":true}'; while :; do sleep 0.05; done`
	c, err := f.Spawn(Spec{Name: "child", Log: filepath.Join(t.TempDir(), "log"), Command: exec.Command("sh", "-c", script), StopWithin: within})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	if _, err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEnd_SparesAChildThatMakesProgress(t *testing.T) {
	t.Parallel()
	c := spawn(t, 10*time.Second, `n=120; while [ $n -gt 0 ]; do echo "{\"unsent_bytes\":$n}"; sleep 0.1; n=$((n-1)); done; exit 0`)
	if err := c.End(nil); err != nil {
		t.Errorf("it ended well after twelve seconds of getting on, with a limit of ten: %v", err)
	}
}

func TestEnd_KillsASilentChild(t *testing.T) {
	t.Parallel()
	c := spawn(t, 2*time.Second, `exec sleep 60`)
	if err := c.End(nil); !fault.Is(err, fault.TimedOut) || c.Running() {
		t.Errorf("%v, running: %v; it is killed after its limit", err, c.Running())
	}
}
