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

// flags are those of every command.
type flags struct {
	Contact string `help:"File that says how to reach the cluster (default: $CARTWHEEL_CONTACT, ./cartwheel-demo/contact.json, or cartwheel/contact.json in the user's configuration)." placeholder:"FILE"`
	JSON    bool   `name:"json" help:"Print JSON, for scripts."`
}

// env is what every command's Run gets.
type env struct {
	ctx   context.Context
	stdio Stdio
	flags flags
	words []string // behind the program's name, with those of -o spelled out
}

// help is what a command's --help says below its purpose.
func help(example string) string { return "Example: " + example + "\n\n" + fault.ExitHelp }

// print writes v as JSON where that was asked for, else calls text.
func (e *env) print(v any, text func(w io.Writer)) error {
	if !e.flags.JSON {
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
	if e.flags.Contact != "" {
		return e.flags.Contact, nil
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
