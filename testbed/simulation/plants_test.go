package simulation

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/node/plant"
)

// seedVariable names the seed that this test's own program runs, as a process.
const seedVariable = "CARTWHEEL_ONE_SEED"

// TestMain lets the test's program be the process of one seed.
func TestMain(m *testing.M) {
	if os.Getenv(seedVariable) == "" {
		os.Exit(m.Run())
	}
	Alone(Options{Seed: lastWord()})
}

// lastWord is the number that the batch adds to the command.
func lastWord() uint64 {
	var n uint64
	for _, c := range os.Args[len(os.Args)-1] {
		n = 10*n + uint64(c-'0')
	}
	return n
}

// searchBound is how long a mistake is looked for, each by itself.
const searchBound = 10 * time.Minute

// TestRun_FindsPlants makes each mistake until a seed finds it, and prints the
// table of what found them. It takes long.
func TestRun_FindsPlants(t *testing.T) {
	if !plant.Built || os.Getenv("CARTWHEEL_PLANTS") == "" {
		t.Skip("needs the build tag plants and CARTWHEEL_PLANTS=1: it takes hours")
	}
	t.Setenv(seedVariable, "1")
	table := []string{"plant | seed | seconds | shown by"}
	for _, name := range plant.All() {
		t.Run(string(name), func(t *testing.T) {
			if slices.Contains(plant.Unfound(), name) {
				t.Skip("no seed is known that finds it")
			}
			s := search(t.Context(), name)
			table = append(table, s.String())
			t.Log(s)
			if s.seed == 0 {
				t.Errorf("no seed of %d found it within %v", s.tried, searchBound)
			}
		})
	}
	t.Log(strings.Join(table, "\n"))
}

// searched is what came of looking for a mistake.
type searched struct {
	name  plant.Name
	seed  uint64 // 0: none found it
	tried int
	took  time.Duration
	shown string
}

// String is a line of the table.
func (s searched) String() string {
	seed := "-"
	if s.seed > 0 {
		seed = fmt.Sprint(s.seed)
	}
	return fmt.Sprintf("%s | %s | %.0f | %.160s", s.name, seed, s.took.Seconds(), s.shown)
}

// search runs seeds with a mistake until one finds it, or the time is over.
func search(ctx context.Context, name plant.Name) searched {
	ctx, cancel := context.WithTimeout(ctx, searchBound)
	defer cancel()
	s, began := searched{name: name}, time.Now()
	// An error says that the time was over: then there is no seed.
	_ = Seeds(ctx, Batch{Self: []string{os.Args[0]}, First: 1, Count: 1 << 32, Jobs: runtime.NumCPU(), Plant: name,
		Until: func(r Result) bool { return r.Found() },
		Each: func(r Result) {
			s.tried++
			if r.Found() && s.seed == 0 {
				s.seed, s.shown = r.Seed, r.Problems[0]
			}
		}})
	s.took = time.Since(began)
	return s
}
