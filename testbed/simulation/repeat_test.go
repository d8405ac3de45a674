//go:build !race

// The race detector has Go choose at random.

package simulation

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestRun_SeedRepeatsItsTrace runs some seeds without faults twice. On a busy
// machine it needs scripts/steady.
func TestRun_SeedRepeatsItsTrace(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for seed := uint64(1); seed <= 3; seed++ {
		var traces [2]bytes.Buffer
		var sums [2]uint64
		for i := range traces {
			sums[i] = Run(t, Options{Seed: seed, Length: 4 * time.Second, Faults: []Kind{}, Dir: t.TempDir(), Trace: &traces[i]}).Sum
		}
		if sums[0] == sums[1] {
			continue
		}
		a, b := strings.Split(traces[0].String(), "\n"), strings.Split(traces[1].String(), "\n")
		at := 0
		for at < min(len(a), len(b))-1 && a[at] == b[at] {
			at++
		}
		t.Errorf("seed %d goes two ways at line %d:\n%s\n%s", seed, at, a[at], b[at])
	}
}
