package cli

import (
	"errors"
	"fmt"
	"io"

	"cartwheel.dev/testbed/lab"
)

type downCmd struct {
	nameFlag
	Crashed bool `help:"Clean up after every lab and run of this machine whose process is gone, and leave those that run."`
}

// Help shows how it is called.
func (downCmd) Help() string { return help("cartwheel-testbed down") }

// Run brings labs down.
func (c downCmd) Run(e *env) error {
	names := []string{c.Name}
	if c.Crashed {
		var err error
		if names, err = lab.Left(e.ctx); err != nil {
			return err
		}
	}
	all := []lab.Down{}
	var errs []error
	for _, name := range names {
		end := e.progress("bringing %s down", name)
		d, err := lab.Bring(e.ctx, name)
		end()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, d)
	}
	if err := e.print(map[string]any{"down": all}, func(w io.Writer) { downText(w, all, c.Crashed) }); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func downText(w io.Writer, all []lab.Down, crashed bool) {
	for _, d := range all {
		what := "is down"
		if d.Crashed {
			what = "had crashed; what it left was removed"
		}
		fmt.Fprintf(w, "%s %s", d.Name, what)
		if d.Dir != "" {
			fmt.Fprintf(w, "; logs are in %s/logs", d.Dir)
		}
		fmt.Fprintln(w)
	}
	if crashed && len(all) == 0 {
		fmt.Fprintln(w, "nothing was left behind")
	}
}
