package cli

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
)

// runWords are what every run takes.
type runWords struct {
	Out   string `help:"Directory that takes the run's directory." default:"cartwheel-testbed" type:"path"`
	Short bool   `help:"Small sizes and few repetitions: to see that it works."`
	Seed  uint64 `help:"Draws what chance draws." default:"1"`
}

type runCmd struct {
	Experiment string `arg:"" help:"One of list."`
	runWords
	Set  map[string]string `help:"A setting of the experiment; list names them." placeholder:"KEY=VALUE"`
	File string            `help:"What rehearse rehearses; the same as --set file=FILE." type:"path" placeholder:"FILE"`
}

// Help shows how it is called.
func (runCmd) Help() string {
	return help("cartwheel-testbed run garage --short\n\nThe directory of a run holds its topology, seed, versions, logs, tables, figures as JSON, and plots.")
}

// Run runs it.
func (c runCmd) Run(e *env) error {
	if c.File != "" {
		if c.Set == nil {
			c.Set = map[string]string{}
		}
		c.Set["file"] = c.File
	}
	return e.experiment(c.Experiment, c.Set, c.runWords)
}

type rehearseCmd struct {
	File string `arg:"" help:"YAML file: docs/testbed.md." type:"path"`
	runWords
}

// Help shows how it is called.
func (rehearseCmd) Help() string { return help("cartwheel-testbed rehearse outage.yaml") }

// Run rehearses.
func (c rehearseCmd) Run(e *env) error {
	return e.experiment("rehearse", map[string]string{"file": c.File}, c.runWords)
}

// ranView is what a run says to scripts.
type ranView struct {
	Experiment string `json:"experiment"`
	Folder     string `json:"folder"`
	Table      string `json:"table"`
}

func (e *env) experiment(name string, set map[string]string, w runWords) error {
	x, err := experiment.Find(known(), name)
	if err != nil {
		return err
	}
	values, err := x.Fill(set)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(w.Out, 0o755); err != nil {
		return fault.FromOS("cli.run", w.Out, err)
	}
	var table bytes.Buffer
	out := io.Writer(&table)
	if !e.json {
		out = e.stdio.Out
	}
	err = x.Run(e.ctx, &experiment.Env{
		Parent: w.Out, Arguments: append([]string{"cartwheel-testbed"}, e.words...), Version: e.stdio.Version, Seed: w.Seed, Short: w.Short,
		Out: out, Progress: e.stdio.Err, Logger: slog.New(slog.NewTextHandler(e.stdio.Err, nil)), Values: values,
	})
	if !e.json || table.Len() == 0 {
		return err
	}
	text := table.String()
	_, folder, _ := strings.Cut(text, "\nrun: ")
	v := ranView{Experiment: name, Folder: filepath.Clean(strings.TrimSpace(folder)), Table: text}
	if perr := e.print(v, func(w io.Writer) { fmt.Fprint(w, text) }); err == nil {
		err = perr
	}
	return err
}
