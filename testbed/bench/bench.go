// Package bench does the same work in several folders, in turns, and tells how
// fast each was: what a person would try before trusting a file system with a
// home directory. It measures and asserts nothing; it is run by
// `npm run bench`. A Runner is used by one goroutine; the works start their own
// and end them.
package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Options are the sizes of the works.
type Options struct {
	Rounds     int   // how often everything is done in each folder
	FileBytes  int64 // of the large file
	RandomOps  int   // 4 KiB reads and overwrites
	SmallFiles int   // of SmallBytes each
	SmallBytes int
	Threads    int
	MailOps    int
	// PostmarkFiles and PostmarkTransactions are HydraFS's 50,000 and 30,000
	// at full size.
	PostmarkFiles, PostmarkTransactions int
	AndrewClients                       []int
	Seed                                uint64
	Only                                string // a work's name, or part of it; empty: all
}

// Defaults are the full sizes: five to ten minutes a folder and round.
func Defaults() Options {
	return Options{
		Rounds: 2, FileBytes: 1 << 30, RandomOps: 20000, SmallFiles: 8000, SmallBytes: 16 << 10, Threads: 8,
		MailOps: 9000, PostmarkFiles: 50000, PostmarkTransactions: 30000, AndrewClients: []int{1, 5, 20}, Seed: 1,
	}
}

// Figure is what one work measured in one folder, once.
type Figure struct {
	Work  string  `json:"work"`
	Unit  string  `json:"unit"`
	Dir   string  `json:"dir"`
	Round int     `json:"round"`
	Value float64 `json:"value"`
}

// place is one folder under measurement.
type place struct {
	dir string
	opt Options
	out func(work, unit string, value float64)
}

// suite is a set of works that need one another's files, done in order.
type suite struct {
	name string
	run  func(ctx context.Context, p place) error
}

func suites() []suite {
	return []suite{
		{"stream", stream}, {"random", random}, {"small", small}, {"mail", mail}, {"postmark", postmark}, {"andrew", andrew},
	}
}

// Runner does the works.
type Runner struct {
	Options  Options
	Progress io.Writer
}

// Run does every suite in every folder, in turns, and returns all figures.
// What it makes in a folder it removes again.
func (r Runner) Run(ctx context.Context, dirs []string) ([]Figure, error) {
	const op fault.Op = "bench.Run"
	var figures []Figure
	for _, d := range dirs {
		if st, err := os.Stat(d); err != nil || !st.IsDir() {
			return nil, fault.E(fault.NotDirectory, op, d, "is not a directory: name directories to measure")
		}
	}
	for round := range r.Options.Rounds {
		for _, s := range suites() {
			if !matches(s.name, r.Options.Only) {
				continue
			}
			for i := range dirs {
				dir := dirs[(i+round)%len(dirs)] // nobody is always first
				got, err := r.once(ctx, s, dir, round)
				figures = append(figures, got...)
				if err != nil {
					return figures, fault.Wrap(fault.Other, op, s.name+" in "+dir, err)
				}
			}
		}
	}
	return figures, nil
}

func (r Runner) once(ctx context.Context, s suite, dir string, round int) ([]Figure, error) {
	work, err := os.MkdirTemp(dir, "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	ctx, cancel := context.WithTimeoutCause(ctx, suiteLimit, fault.E(fault.TimedOut, "bench.Run", s.name, "took more than half an hour"))
	defer cancel()
	var figures []Figure
	p := place{dir: work, opt: r.Options, out: func(name, unit string, v float64) {
		figures = append(figures, Figure{Work: name, Unit: unit, Dir: dir, Round: round, Value: v})
		fmt.Fprintf(r.Progress, "%-28s %-30s round %d  %12.0f %s\n", name, dir, round+1, v, unit)
	}}
	err = s.run(ctx, p)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return figures, err
}

// suiteLimit bounds one suite in one folder: a file system on which it takes
// longer is not measured.
const suiteLimit = 30 * time.Minute

func matches(name, only string) bool {
	if only == "" {
		return true
	}
	for _, part := range filepath.SplitList(only) {
		if part == name {
			return true
		}
	}
	return false
}

// Table prints the medians, a row a work and a column a folder, with each
// folder's ratio to the first.
func Table(w io.Writer, dirs []string, figures []Figure) {
	type key struct{ work, unit string }
	var order []key
	values := map[key]map[string][]float64{}
	for _, f := range figures {
		k := key{f.Work, f.Unit}
		if values[k] == nil {
			values[k] = map[string][]float64{}
			order = append(order, k)
		}
		values[k][f.Dir] = append(values[k][f.Dir], f.Value)
	}
	fmt.Fprintf(w, "\n%-34s", "median")
	for _, d := range dirs {
		fmt.Fprintf(w, " %24s", shorten(d, 24))
	}
	fmt.Fprintln(w)
	for _, k := range order {
		fmt.Fprintf(w, "%-34s", k.work+", "+k.unit)
		first := median(values[k][dirs[0]])
		for i, d := range dirs {
			v := median(values[k][d])
			if i == 0 {
				fmt.Fprintf(w, " %24.1f", v)
				continue
			}
			fmt.Fprintf(w, " %15.1f (%5.2fx)", v, v/first)
		}
		fmt.Fprintln(w)
	}
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n+1:]
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// timed returns how long fn took, in seconds.
func timed(fn func() error) (float64, error) {
	start := time.Now()
	err := fn()
	return time.Since(start).Seconds(), err
}
