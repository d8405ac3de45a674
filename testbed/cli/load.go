package cli

import "cartwheel.dev/testbed/load"

// loadCmd is one piece of an experiment's work, which an experiment has a host
// do.
type loadCmd struct {
	Words []string `arg:"" passthrough:"" help:"What to do, and its options."`
}

// Help shows how it is called.
func (loadCmd) Help() string {
	return help("cartwheel-testbed load stream write /mnt/file --size 1000000")
}

// Run does it, and prints what came of it as JSON.
func (c loadCmd) Run(e *env) error { return load.Main(e.ctx, c.Words, e.stdio.Out) }
