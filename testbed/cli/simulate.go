package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/testbed/simulation"
)

type simulateCmd struct {
	Seed    *uint64  `help:"Run this seed alone and print what happened."`
	Seeds   uint64   `help:"How many seeds to run." default:"100"`
	From    uint64   `help:"The first of them." default:"1"`
	Jobs    int      `help:"How many at once; 0: as many as there are processors." default:"0"`
	Faults  []string `help:"Only these kinds of faults."`
	Plant   string   `help:"A mistake to make on purpose: the name of one, or list."`
	Traces  string   `help:"Keep the traces of seeds that fail in this directory." type:"path"`
	Packets bool     `help:"Trace every packet as well."`
}

// Help shows how it is called.
func (simulateCmd) Help() string {
	return help("cartwheel-testbed simulate --seeds 1000\n         cartwheel-testbed simulate --seed 17\n\n" +
		"Runs whole clusters in virtual time, each drawn from a seed: its size, its limits, its faults, its work. It fails if any seed does, and prints what was wrong.")
}

type simulated struct {
	Seeds   uint64              `json:"seeds"`
	Failed  []simulation.Result `json:"failed"`
	Minutes float64             `json:"minutes"`
	Rate    float64             `json:"seeds_per_minute"`
}

// Run runs seeds.
func (c simulateCmd) Run(e *env) error {
	if c.Plant == "list" {
		return e.print(plant.All(), func(w io.Writer) {
			for _, p := range plant.All() {
				fmt.Fprintln(w, p)
			}
		})
	}
	self, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.IO, "cli.simulate", "", err)
	}
	b := simulation.Batch{Self: []string{self, "simulate-one"}, First: c.From, Count: c.Seeds, Jobs: c.Jobs}
	if b.Jobs == 0 {
		b.Jobs = runtime.NumCPU()
	}
	if c.Seed != nil {
		b.First, b.Count, b.Trace = *c.Seed, 1, e.stdio.Out
		b.Self = append(b.Self, "--trace")
	}
	if c.Traces != "" && c.Seed == nil {
		if err := os.MkdirAll(c.Traces, 0o755); err != nil {
			return fault.FromOS("cli.simulate", c.Traces, err)
		}
		b.Keep, b.Self = c.Traces, append(b.Self, "--trace")
	}
	if c.Packets {
		b.Self = append(b.Self, "--packets")
	}
	for _, k := range c.Faults {
		if all := slices.Concat(simulation.Kinds(), simulation.Lying(), simulation.Untold()); !slices.Contains(all, simulation.Kind(k)) {
			return fault.Errorf(fault.Invalid, "cli.simulate", k, "no kind of fault; there are %v", all)
		}
		b.Self = append(b.Self, "--faults="+k)
	}
	if c.Plant != "" {
		if !plant.Built || !slices.Contains(plant.All(), plant.Name(c.Plant)) {
			return fault.E(fault.Invalid, "cli.simulate", c.Plant, "no such plant, or this program is not built with the tag plants: --plant=list names them")
		}
		b.Plant = plant.Name(c.Plant)
		b.Until = func(r simulation.Result) bool { return r.Found() }
	}
	return c.run(e, b)
}

func (c simulateCmd) run(e *env, b simulation.Batch) error {
	out := simulated{Failed: []simulation.Result{}}
	began := time.Now()
	b.Each = func(r simulation.Result) {
		out.Seeds++
		if len(r.Problems) > 0 {
			out.Failed = append(out.Failed, r)
		}
		if !e.json {
			simulatedLine(e.stdio.Out, r, b.Count == 1)
		}
	}
	if err := simulation.Seeds(e.ctx, b); err != nil {
		return err
	}
	out.Minutes = time.Since(began).Minutes()
	out.Rate = float64(out.Seeds) / out.Minutes
	if err := e.print(out, func(w io.Writer) {
		fmt.Fprintf(w, "%d seeds, %d failed, %.0f seeds a minute\n", out.Seeds, len(out.Failed), out.Rate)
	}); err != nil {
		return err
	}
	if len(out.Failed) > 0 {
		return fault.E(fault.Other, "cli.simulate", strconv.Itoa(len(out.Failed)), "seeds failed")
	}
	return nil
}

func simulatedLine(w io.Writer, r simulation.Result, always bool) {
	for _, p := range r.Problems {
		fmt.Fprintf(w, "seed %d: %s\n", r.Seed, p)
	}
	if always {
		fmt.Fprintf(w, "seed %d: %d operations in %v of virtual time, trace %016x of %d lines, %v\n", r.Seed, r.Operations, r.Virtual, r.Sum, r.Lines, r.Faults)
	}
}

// simulateOneCmd is the process of one seed.
type simulateOneCmd struct {
	Seed    uint64   `arg:""`
	Trace   bool     ``
	Packets bool     ``
	Faults  []string ``
}

// Run runs one seed and ends the process.
func (c simulateOneCmd) Run(e *env) error {
	o := simulation.Options{Seed: c.Seed, Level: simulation.Level(c.Packets)}
	if c.Trace {
		o.Trace = e.stdio.Out
	}
	for _, k := range c.Faults {
		o.Faults = append(o.Faults, simulation.Kind(k))
	}
	simulation.Alone(o)
	return nil
}
