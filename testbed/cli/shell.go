package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/lab"
	"cartwheel.dev/testbed/netns"
	"cartwheel.dev/testbed/topology"
)

type shellCmd struct {
	nameFlag
	Host string   `arg:"" help:"Host, or a site that has one."`
	Cmd  []string `arg:"" optional:"" passthrough:"" name:"cmd" help:"Command and its words (default: a shell)."`
}

// Help shows how it is called.
func (shellCmd) Help() string {
	return help("cartwheel-testbed shell s1-1 cartwheel where .\n\nIt runs in the host's network, at its mount, with the contact file and site in its environment. The exit status is the command's.")
}

// Run runs it.
func (c shellCmd) Run(e *env) error {
	const op fault.Op = "cli.Run"
	r, runs, err := lab.Load(c.Name)
	if err != nil {
		return err
	}
	if !runs {
		return fault.Errorf(fault.Unreachable, op, c.Name, "this lab's process is gone: `cartwheel-testbed down --name %s` cleans up after it", c.Name)
	}
	h, ok := r.Host(c.Host)
	if !ok {
		var names []string
		for _, one := range r.Hosts {
			names = append(names, one.Name)
		}
		return fault.E(fault.NotFound, op, c.Host, "is no host of this lab"+topology.SuggestOf(c.Host, names))
	}
	argv := c.Cmd
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		argv = []string{e.shell()}
	}
	// The terminal's signals reach the command by themselves.
	cmd := netns.Command(context.WithoutCancel(e.ctx), h.Namespace, argv...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.stdio.In, e.stdio.Out, e.stdio.Err
	cmd.Env = append(append([]string(nil), e.stdio.Environ...), h.Environ...)
	cmd.Env = append(cmd.Env, "PS1="+h.Name+" \\w \\$ ", "CARTWHEEL_LAB="+c.Name)
	if info, err := os.Stat(h.Mount); h.Mount != "" && err == nil && info.IsDir() {
		cmd.Dir = h.Mount
	}
	err = cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return &exitError{code: max(failed.ExitCode(), 1)}
	}
	return fault.Wrap(fault.NotFound, op, argv[0], err)
}

func (e *env) shell() string {
	if s := e.getenv("SHELL"); s != "" {
		return s
	}
	return "/bin/sh"
}
