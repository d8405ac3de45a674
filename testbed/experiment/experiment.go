// Package experiment says what an experiment is, so that those who write one
// and the command that runs them agree: a name, a sentence, the settings that a
// person may choose, and a function that runs unattended and writes the folder
// of its run. It runs nothing itself. An Env belongs to one run; what it holds
// may be used by the run's goroutines.
package experiment

import (
	"context"
	"io"
	"log/slog"
	"sort"
	"strconv"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/topology"
)

// Experiment is one thing that `cartwheel-testbed run` can do.
type Experiment struct {
	Name    string // a-z, 0-9 and '-'
	Summary string // one line
	// Settings are what `--set KEY=VALUE` takes.
	Settings []Setting
	// Run does it all: it makes the folder with Env.Folder, brings labs up and
	// down, measures, and finishes the folder. It returns when ctx ends, with
	// nothing left running. A figure that misses what is to be reached is no
	// error; a run that could not be made is.
	Run func(ctx context.Context, env *Env) error
}

// Setting is what a person may choose.
type Setting struct {
	Name    string
	Default string
	Help    string
}

// Env is what one run gets.
type Env struct {
	Parent    string   // folder of all runs
	Arguments []string // the command line that repeats the run
	Version   string   // of the programs
	Seed      uint64
	Short     bool // the form that fits in a test: small sizes, few repetitions
	// Out takes the tables, Progress a line now and then on what goes on.
	Out      io.Writer
	Progress io.Writer
	Logger   *slog.Logger
	// Values are the settings: what was given, else the defaults.
	Values map[string]string
}

// Folder makes the folder of the run; t is nil where no topology is used.
func (e *Env) Folder(name string, t *topology.Topology) (*report.Folder, error) {
	o := report.Options{Parent: e.Parent, Experiment: name, Arguments: e.Arguments, Seed: e.Seed, Short: e.Short, Version: e.Version}
	if t != nil {
		o.Topology = t.YAML()
	}
	return report.New(o)
}

// Text returns a setting.
func (e *Env) Text(name string) string { return e.Values[name] }

// Number returns a setting that is a number.
func (e *Env) Number(name string) (float64, error) {
	v, err := strconv.ParseFloat(e.Values[name], 64)
	if err != nil {
		return 0, fault.Errorf(fault.Usage, "experiment.Number", name, "%q is no number", e.Values[name])
	}
	return v, nil
}

// Fill completes what was given by the defaults, and refuses what there is no
// setting for.
func (x Experiment) Fill(given map[string]string) (map[string]string, error) {
	values := map[string]string{}
	var known []string
	for _, s := range x.Settings {
		values[s.Name] = s.Default
		known = append(known, s.Name)
	}
	var names []string
	for k := range given {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		if _, ok := values[k]; !ok {
			hint := topology.Suggest(k, known)
			if hint == "" && len(known) == 0 {
				hint = "; it has none"
			} else if hint == "" {
				hint = "; it has " + strings.Join(known, ", ")
			}
			return nil, fault.E(fault.Usage, "experiment.Fill", k, "is no setting of "+x.Name+hint)
		}
		values[k] = given[k]
	}
	return values, nil
}

// Find returns the experiment of that name.
func Find(all []Experiment, name string) (Experiment, error) {
	var names []string
	for _, x := range all {
		if x.Name == name {
			return x, nil
		}
		names = append(names, x.Name)
	}
	hint := topology.Suggest(name, names)
	if hint == "" {
		hint = "; there are " + strings.Join(names, ", ")
	}
	return Experiment{}, fault.E(fault.NotFound, "experiment.Find", name, "is no experiment"+hint)
}
