package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	clients "cartwheel.dev/clients/command"
	"cartwheel.dev/geo-config/fault"
)

// Stdio is what a command reads and writes, and who it is.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
	Version  string
	// Again closes at the second signal: what was ending in order is to end
	// at once. Nil: never.
	Again <-chan struct{}
}

// env is what every command's Run gets.
type env struct {
	ctx   context.Context
	stdio Stdio
	json  bool
	lab   string   // whose faults are made
	words []string // behind the program's name
}

// help is what a command's --help says below its purpose.
func help(example string) string { return "Example: " + example + "\n\n" + fault.ExitHelp }

// print writes v as JSON where that was asked for, else calls text.
func (e *env) print(v any, text func(w io.Writer)) error {
	if !e.json {
		text(e.stdio.Out)
		return nil
	}
	return clients.WriteJSON(e.stdio.Out, v)
}

// done says that a change was made: a line for people, or JSON.
func (e *env) done(v any, format string, args ...any) error {
	return e.print(v, func(w io.Writer) { fmt.Fprintf(w, format+"\n", args...) })
}

// say tells people what goes on; scripts do not read it.
func (e *env) say(format string, args ...any) { fmt.Fprintf(e.stdio.Err, format+"\n", args...) }

func (e *env) getenv(name string) string {
	for _, v := range e.stdio.Environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// progress says on standard error what is going on, once it takes long.
func (e *env) progress(format string, args ...any) func() {
	return clients.Progress(e.stdio.Err, fmt.Sprintf(format, args...))
}
