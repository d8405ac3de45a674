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
	"os"
	"path/filepath"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// Stdio is what a command reads and writes, and who it is.
type Stdio struct {
	Out, Err io.Writer
	Environ  []string
	Version  string
	// Again closes at the second signal: what was ending in order is to end
	// at once. Nil: never.
	Again <-chan struct{}
}

// grammar is the whole command line.
type grammar struct {
	Contact string `help:"File that says how to reach the cluster (default: $CARTWHEEL_CONTACT, ./cartwheel-demo/contact.json, or cartwheel/contact.json in the user's configuration)." placeholder:"FILE"`
	JSON    bool   `name:"json" help:"Print JSON, for scripts."`

	Demo    demoCmd    `cmd:"" help:"Run three sites on this machine, and fail and heal them."`
	Mount   mountCmd   `cmd:"" help:"Mount the tree."`
	Umount  umountCmd  `cmd:"" help:"Unmount, and wait until everything written is at the nodes."`
	Status  statusCmd  `cmd:"" help:"Show cluster health."`
	Slice   sliceCmd   `cmd:"" help:"List slices, and hand them over."`
	Net     netCmd     `cmd:"" help:"Show the round trips between nodes: measured, predicted, measured now."`
	Where   whereCmd   `cmd:"" help:"Show where a file is: its cues, slice, active, standbys, and which copy is read."`
	Trace   traceCmd   `cmd:"" help:"Run a command and count what its file operations cost: round trips to other sites, bytes, time."`
	Key     keyCmd     `cmd:"" help:"Make a user's key if there is none, and print its identity."`
	Doctor  doctorCmd  `cmd:"" help:"Check what mounting needs on this machine."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// env is what every command's Run gets.
type env struct {
	ctx   context.Context
	stdio Stdio
	g     *grammar
	words []string // behind the program's name, with those of -o spelled out
}

// help is what a command's --help says below its purpose.
func help(example string) string { return "Example: " + example + "\n\n" + fault.ExitHelp }

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
	e := &env{ctx: ctx, stdio: stdio, g: g, words: words}
	if len(g.Mount.Options) > 0 {
		more, err := e.spell(g.Mount.Options)
		if err != nil {
			return err
		}
		e.words = append(without(words, g.Mount.Options), more...)
		p, e.g = program(stdio)
		if parsed, err = p.Parse(e.words); parsed == nil {
			return err
		}
	}
	return parsed.Run(e)
}

// print writes v as JSON where that was asked for, else calls text.
func (e *env) print(v any, text func(w io.Writer)) error {
	if !e.g.JSON {
		text(e.stdio.Out)
		return nil
	}
	return WriteJSON(e.stdio.Out, v)
}

// done says that a change was made: a line for people, or JSON.
func (e *env) done(v any, format string, args ...any) error {
	return e.print(v, func(w io.Writer) { fmt.Fprintf(w, format+"\n", args...) })
}

func (e *env) getenv(name string) string {
	for _, v := range e.stdio.Environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// contactFile finds the file that says how to reach the cluster.
func (e *env) contactFile() (string, error) {
	const op fault.Op = "command.contactFile"
	if e.g.Contact != "" {
		return e.g.Contact, nil
	}
	if f := e.getenv("CARTWHEEL_CONTACT"); f != "" {
		return f, nil
	}
	tried := []string{filepath.Join("cartwheel-demo", "contact.json")}
	if dir, err := os.UserConfigDir(); err == nil {
		tried = append(tried, filepath.Join(dir, "cartwheel", "contact.json"))
	}
	for _, f := range tried {
		if _, err := os.Stat(f); err == nil {
			return f, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", fault.FromOS(op, f, err)
		}
	}
	return "", fault.Errorf(fault.NotFound, op, "contact file", "none of %s is there: name one with --contact, or start `cartwheel demo`", strings.Join(tried, ", "))
}

type versionCmd struct{}

// Help shows how it is called.
func (versionCmd) Help() string { return help("cartwheel version --json") }

// Run prints the version.
func (versionCmd) Run(e *env) error {
	return e.print(map[string]string{"version": e.stdio.Version}, func(w io.Writer) { fmt.Fprintln(w, "cartwheel", e.stdio.Version) })
}
