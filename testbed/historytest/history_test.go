package historytest

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The runs wait more than they work: as many at once as there are.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestRun_CalmHasNoProblems runs without faults, and judges names by when they
// are made, not by when they are closed.
func TestRun_CalmHasNoProblems(t *testing.T) {
	t.Parallel()
	seed := number(t, "CARTWHEEL_SEED", 1)
	v := Run(t, Options{Seed: seed, Nodes: 3, Clients: 3, Length: 3 * time.Second, Calm: true})
	if len(v.Problems) > 0 {
		t.Errorf("seed %d:\n%s", seed, strings.Join(v.Problems, "\n"))
	}
}

// TestRun_CreatesAtAllMembersHaveNoProblems runs seeds in which clients send creates of
// write-once files to all members at once: CARTWHEEL_SEEDS of them (2), from
// CARTWHEEL_SEED on (15, in which an active is lost that has answered such a create).
func TestRun_CreatesAtAllMembersHaveNoProblems(t *testing.T) {
	first, count := number(t, "CARTWHEEL_SEED", 15), number(t, "CARTWHEEL_SEEDS", 2)
	for seed := first; seed < first+count; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			if count <= 3 {
				t.Parallel()
			}
			v := Run(t, Options{Seed: seed, Nodes: 3 + int(seed%8)/4, Clients: 4, Length: 3 * time.Second, Once: true, Log: os.Getenv("CARTWHEEL_LOG") != ""})
			t.Logf("seed %d: %d operations, %d unknown; faults: %s", seed, v.Events, v.Unknown, v.Faults)
			if len(v.Unjudged) > 0 {
				t.Logf("seed %d: not judged in time: %v", seed, v.Unjudged)
			}
			if len(v.Problems) > 0 {
				t.Errorf("seed %d: faults %s\n%s", seed, v.Faults, strings.Join(v.Problems, "\n"))
			}
		})
	}
}

// TestRun_SeedsHaveNoProblems runs seeds: CARTWHEEL_SEEDS of them (3), from
// CARTWHEEL_SEED on (1).
func TestRun_SeedsHaveNoProblems(t *testing.T) {
	first, count := number(t, "CARTWHEEL_SEED", 1), number(t, "CARTWHEEL_SEEDS", 3)
	for seed := first; seed < first+count; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			if count <= 3 {
				t.Parallel()
			}
			began := time.Now()
			v := Run(t, Options{Seed: seed, Nodes: 3 + int(seed%8)/4 + int(seed%8)/7, Clients: 4, Length: 3 * time.Second, Log: os.Getenv("CARTWHEEL_LOG") != ""})
			t.Logf("seed %d: %d operations, %d unknown; the longest, %s, took %v; whole after %v; in all %v; faults: %s", seed, v.Events, v.Unknown,
				v.Which, v.Longest, v.Whole, time.Since(began), v.Faults)
			if len(v.Unjudged) > 0 {
				t.Logf("seed %d: not judged in time: %v", seed, v.Unjudged)
			}
			if len(v.Problems) > 0 {
				t.Errorf("seed %d: faults %s\n%s\nreplay: CARTWHEEL_SEED=%d CARTWHEEL_SEEDS=1 go test -run TestRun_SeedsHaveNoProblems -v ./historytest", seed, v.Faults,
					strings.Join(v.Problems, "\n"), seed)
			}
		})
	}
}
