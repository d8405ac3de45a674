package simulation

import (
	"io"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"
)

// number reads a number from the environment.
func number(name string, unless uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return unless
}

// TestRun_SeedsHaveNoProblems runs seeds with all kinds of faults.
func TestRun_SeedsHaveNoProblems(t *testing.T) {
	first, count := number("CARTWHEEL_SEED", 1), number("CARTWHEEL_SEEDS", 1)
	var out io.Writer
	level := slog.LevelInfo
	if os.Getenv("CARTWHEEL_TRACE") != "" {
		out = os.Stderr
		if os.Getenv("CARTWHEEL_TRACE") == "debug" {
			level = slog.LevelDebug
		}
	}
	var faults []Kind
	if k := os.Getenv("CARTWHEEL_FAULT"); k != "" {
		faults = []Kind{Kind(k)}
	}
	for seed := first; seed < first+count; seed++ {
		began := time.Now()
		r := Run(t, Options{Seed: seed, Dir: t.TempDir(), Trace: out, Level: level, Faults: faults})
		for _, p := range r.Problems {
			t.Errorf("seed %d: %s", seed, p)
		}
		t.Logf("seed %d: %d operations, %v virtual, %v, sum %x, %v", seed, r.Operations, r.Virtual, time.Since(began), r.Sum, r.Faults)
	}
}
