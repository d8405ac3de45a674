package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// suite is a set of works that need one another's files, done in order.
type suite struct {
	name string
	run  func(ctx context.Context, p place) error
}

func suites() []suite {
	return []suite{
		{"stream", stream}, {"random", random}, {"small", small}, {"mail", mail}, {"postmark", postmark}, {"andrew", andrew}, {"pgbench", pgbench},
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
			return nil, fault.E(fault.NotDirectory, op, d, "is not a folder: name folders to measure")
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
