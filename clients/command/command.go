// Package command is the `cartwheel` command line: it reads words and options,
// calls the packages that do the work, and prints what people or scripts want
// to read. It holds no logic of files or clusters. Each command is one file; a
// process runs one command.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"cartwheel.dev/geo-config/fault"
)

// grammar is the whole command line.
type grammar struct {
	flags

	Demo    demoCmd    `cmd:"" help:"Run three sites on this machine, and fail and heal them."`
	Mount   mountCmd   `cmd:"" help:"Mount the tree."`
	Umount  umountCmd  `cmd:"" help:"Unmount, and wait until everything written is at the nodes."`
	Cluster clusterCmd `cmd:"" help:"Found a cluster, and let machines join it."`
	Site    siteCmd    `cmd:"" help:"List, add, drain and remove sites."`
	Node    nodeCmd    `cmd:"" help:"List, drain and remove nodes."`
	ruleCmds
	User      userCmd      `cmd:"" help:"List, add and revoke users."`
	Account   accountCmd   `cmd:"" help:"List, add and change the accounts of the console."`
	Console   consoleCmd   `cmd:"" help:"Let somebody in to the console."`
	API       apiCmd       `cmd:"" name:"api" help:"Ask a node's admin API, for scripts."`
	Audit     auditCmd     `cmd:"" help:"Show who changed what in the configuration."`
	Status    statusCmd    `cmd:"" help:"Show cluster health."`
	Scrub     scrubCmd     `cmd:"" help:"Have nodes read all that they store and repair it, or show what they found."`
	Slice     sliceCmd     `cmd:"" help:"List slices, and hand them over."`
	Conflicts conflictsCmd `cmd:"" help:"List what was kept where both sides of a cut wrote, and what waits to be merged."`
	Net       netCmd       `cmd:"" help:"Show the round trips between nodes: measured, predicted, measured now."`
	lossCmds
	pathCmds
	GeoConfig geoConfigCmd `cmd:"" name:"geo-config" help:"Keep the configuration in a database: make its tables, verify it, move, back up."`
	Key       keyCmd       `cmd:"" help:"Make a user's key if there is none, and print its identity."`
	Doctor    doctorCmd    `cmd:"" help:"Check what mounting needs on this machine."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
}

// ruleCmds are the commands about the rules by which nodes copy and move slices.
type ruleCmds struct {
	Policy  policyCmd  `cmd:"" help:"List and change what slices must satisfy."`
	Budget  budgetCmd  `cmd:"" help:"List and change what sites may send each other."`
	Balance balanceCmd `cmd:"" help:"List how full nodes are, and change when they give slices away."`
}

// lossCmds are the commands about what a loss costs.
type lossCmds struct {
	WhatIf whatIfCmd `cmd:"" name:"what-if" help:"Predict what the loss of a site, a new site, or another layout would do."`
	Drill  drillCmd  `cmd:"" help:"Fail a part of the running cluster for a time, and measure what clients notice."`
}

// pathCmds are the commands about paths below a mount.
type pathCmds struct {
	History  historyCmd  `cmd:"" help:"List the versions of a name that are retained, and how to restore one."`
	Where    whereCmd    `cmd:"" help:"Show where a file is: its cues, slice, active, standbys, and which copy is read."`
	Space    spaceCmd    `cmd:"" help:"Show what holds space: a tree's files, and what its slices retain, share and collect."`
	Snapshot snapshotCmd `cmd:"" help:"Make, list, delete, compare, restore, send and receive snapshots of the tree."`
	Trace    traceCmd    `cmd:"" help:"Run a command and count what its file operations cost: round trips to other sites, bytes, time."`
}

// Run runs one command and returns its exit code. The first of argv is the
// program's name. Errors are printed here and nowhere else.
func Run(ctx context.Context, argv []string, stdio Stdio) int {
	err := run(ctx, argv, stdio)
	if err == nil {
		return fault.ExitOK
	}
	fmt.Fprintf(stdio.Err, "cartwheel: %s\n", explain(err))
	if other := (*ended)(nil); errors.As(err, &other) {
		return other.status
	}
	return fault.ExitCode(err)
}

// program is the command line with a grammar of its own.
func program(stdio Stdio) (Program, *grammar) {
	var g grammar
	return Program{Name: "cartwheel", About: "One tree of files over many sites.\n\n" + fault.ExitHelp, Grammar: &g, Out: stdio.Out, Err: stdio.Err}, &g
}

func run(ctx context.Context, argv []string, stdio Stdio) error {
	words := ourWords(argv)
	p, g := program(stdio)
	parsed, err := p.Parse(words)
	if parsed == nil {
		return err
	}
	e := &env{ctx: ctx, stdio: stdio, words: words}
	if len(g.Mount.Options) > 0 {
		more, err := e.spell(g.Mount.Options)
		if err != nil {
			return err
		}
		e.words = append(without(words, g.Mount.Options), more...)
		p, g = program(stdio)
		if parsed, err = p.Parse(e.words); parsed == nil {
			return err
		}
	}
	e.flags = g.flags
	return parsed.Run(e)
}

type versionCmd struct{}

// Help shows how it is called.
func (versionCmd) Help() string { return help("cartwheel version --json") }

// Run prints the version.
func (versionCmd) Run(e *env) error {
	return e.print(map[string]string{"version": e.stdio.Version}, func(w io.Writer) { fmt.Fprintln(w, "cartwheel", e.stdio.Version) })
}
