// Package cli is the `cartwheel-testbed` command line: it reads words and
// options, calls the packages that do the work, and prints what people or
// scripts want to read. It holds no logic of networks or labs. Each command is
// one file; a process runs one command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	clients "cartwheel.dev/clients/command"
	"cartwheel.dev/geo-config/fault"
)

// grammar is the whole command line.
type grammar struct {
	JSON bool `name:"json" help:"Print JSON, for scripts."`

	Up           upCmd           `cmd:"" help:"Bring a topology up: its network, its nodes, its mounts."`
	Down         downCmd         `cmd:"" help:"Bring a lab down, or clean up after one that crashed."`
	Status       statusCmd       `cmd:"" help:"Show a lab: its hosts, its processes, its faults."`
	Shell        shellCmd        `cmd:"" help:"Run a command, or a shell, in a host."`
	Fault        faultCmd        `cmd:"" help:"Cut, slow down, kill, and heal."`
	Run          runCmd          `cmd:"" help:"Run an experiment, unattended, and write its directory."`
	Rehearse     rehearseCmd     `cmd:"" help:"Run work and faults of your own, from one YAML file."`
	Availability availabilityCmd `cmd:"" help:"Predict downtime and loss a year from figures of your own."`
	Calibrate    calibrateCmd    `cmd:"" help:"Measure the emulator itself against what it is asked for."`
	Load         loadCmd         `cmd:"" help:"Do one piece of an experiment's work, on a mount or through the library."`
	Strain       strainCmd       `cmd:"" help:"Put real processes under load, and print figures."`
	Simulate     simulateCmd     `cmd:"" help:"Run whole clusters in virtual time, from seeds."`
	List         listCmd         `cmd:"" help:"List topologies, experiments and cities."`
	Version      versionCmd      `cmd:"" help:"Print the version."`

	Emulate     emulateCmd     `cmd:"" hidden:"" help:"The emulator's process; a lab starts it."`
	SimulateOne simulateOneCmd `cmd:"" hidden:"" help:"The process of one seed."`
	Enrol       enrolCmd       `cmd:"" hidden:"" help:"What a lab does inside a host."`
}

// Run runs one command and returns its exit code. The first of argv is the
// program's name. Errors are printed here and nowhere else.
func Run(ctx context.Context, argv []string, stdio Stdio) int {
	err := run(ctx, argv, stdio)
	if err == nil {
		return fault.ExitOK
	}
	var other *exitError
	if errors.As(err, &other) {
		fmt.Fprint(stdio.Err, other.text)
		return other.code
	}
	fmt.Fprintf(stdio.Err, "cartwheel-testbed: %s\n", fault.Explain(err))
	return fault.ExitCode(err)
}

// program is the command line with a grammar of its own.
func program(stdio Stdio) (clients.Program, *grammar) {
	var g grammar
	return clients.Program{Name: "cartwheel-testbed", About: "A wide area on one machine, with Cartwheel running on it.\n\n" + fault.ExitHelp,
		Grammar: &g, Out: stdio.Out, Err: stdio.Err}, &g
}

func run(ctx context.Context, argv []string, stdio Stdio) error {
	p, g := program(stdio)
	words := argv[min(1, len(argv)):]
	parsed, err := p.Parse(words)
	if parsed == nil {
		return err
	}
	return parsed.Run(&env{ctx: ctx, stdio: stdio, json: g.JSON, lab: g.Fault.Name, words: words})
}

type versionCmd struct{}

// Help shows how it is called.
func (versionCmd) Help() string { return help("cartwheel-testbed version --json") }

// Run prints the version.
func (versionCmd) Run(e *env) error {
	return e.print(map[string]string{"version": e.stdio.Version}, func(w io.Writer) { fmt.Fprintln(w, "cartwheel-testbed", e.stdio.Version) })
}
