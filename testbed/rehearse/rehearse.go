// Package rehearse runs what a person brings: a topology, commands that work in
// its hosts, and faults at their times, all from one YAML file, unattended. It
// counts how often each command ran, how long that took and what failed, checks
// at the end what the file says to check, and writes the folder of the run. A
// Plan is never changed once it was read; a run belongs to one goroutine.
package rehearse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/topology"
)

// Plan is what is rehearsed.
type Plan struct {
	Name     string
	Summary  string
	Topology *topology.Topology
	Work     []Work
	Faults   []Step // in the order of their times
	Checks   []Check
	// Length is when work is ended that has no end of its own; 0: never.
	Length time.Duration
}

// Work is a command that runs in hosts, once or again and again.
type Work struct {
	Name   string
	Hosts  []string
	Script string        // for /bin/sh, at the host's mount
	At     time.Duration // from the start
	Times  int           // how often; 0: until For is over
	For    time.Duration // 0: without limit
	Every  time.Duration // from one start to the next, at the least
	Limit  time.Duration // of one run; then it is killed, and failed
}

// Step is a fault at its time.
type Step struct {
	At    time.Duration
	Fault lab.Fault
}

// Check is a command that has to succeed when all work has ended and the
// network is healed.
type Check struct {
	Host   string
	Script string
	Limit  time.Duration
}

// Experiment is what `cartwheel-testbed run rehearse --file FILE` runs.
func Experiment() experiment.Experiment {
	return experiment.Experiment{
		Name: "rehearse", Summary: "any topology, work and schedule of faults, from one YAML file",
		Settings: []experiment.Setting{{Name: "file", Help: "the YAML file (docs/testbed.md)"}},
		Run:      run,
	}
}

func run(ctx context.Context, env *experiment.Env) (err error) {
	const op fault.Op = "rehearse.run"
	file := env.Text("file")
	if file == "" {
		return fault.E(fault.Usage, op, "--file", "names the YAML file to rehearse; docs/testbed.md says what is in it")
	}
	plan, err := ReadFile(file, env.Seed)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fault.FromOS(op, file, err)
	}
	f, err := env.Folder("rehearse", plan.Topology)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.Path("rehearse.yaml"), text, 0o644); err != nil {
		return fault.FromOS(op, f.Dir(), err)
	}
	self, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	say := func(format string, args ...any) { fmt.Fprintf(env.Progress, format+"\n", args...) }
	l, err := lab.Up(ctx, lab.Options{
		Name: fmt.Sprintf("r%07d", rand.Uint32N(1e7)), Topology: plan.Topology, Dir: f.Dir(), Programs: lab.Beside(filepath.Dir(self)),
		NodeFlags: []string{fmt.Sprintf("--memory-bytes=%d", 128<<20)}, Say: say,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-l.AskedDown():
			cancel(fault.E(fault.Canceled, op, l.Name(), "another process asked the lab to go down"))
		case <-ctx.Done():
		}
	}()
	r := &rehearsal{Plan: plan, lab: l, say: say, logs: f.Path("logs")}
	out, err := r.run(ctx)
	if err != nil {
		return err
	}
	if err := f.Finish(out, env.Out); err != nil {
		return err
	}
	return r.verdict()
}
