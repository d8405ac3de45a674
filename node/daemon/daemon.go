// Package daemon is the process around a node or the geo-config server: its
// command line, configuration, keys, logging, readiness and exit codes. What a
// node does is package server's matter. Run may be called once at a time.
package daemon

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/version"
)

const description = `A Cartwheel storage node, or the geo-config server.

` + fault.ExitHelp + `

  cartwheeld key --data /var/lib/cartwheel
  cartwheeld geo-config --data /var/lib/cartwheel-geo --listen /ip4/0.0.0.0/tcp/7300 --admin ID ...
  cartwheeld node --data /var/lib/cartwheel --site tokyo --geo-config /ip4/10.0.0.1/tcp/7300/p2p/ID`

// commands is the grammar of cartwheeld's command line.
type commands struct {
	Node      nodeCmd      `cmd:"" help:"Run a storage node."`
	GeoConfig geoConfigCmd `cmd:"" name:"geo-config" help:"Run the configuration store's server: the embedded store, or a database."`
	Join      joinCmd      `cmd:"" help:"Add this machine to a cluster as a node, with a token of an administrator."`
	Key       keyCmd       `cmd:"" help:"Make a data directory's key if it has none, and print its identity."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
}

// Run runs the command that args name until ctx ends, and returns the
// process's exit code. Errors are told on Stdio.Err.
func Run(ctx context.Context, args []string, io Stdio) int {
	var c commands
	code := -1
	parser, err := kong.New(&c, kong.Name("cartwheeld"), kong.Description(description), kong.Writers(io.Out, io.Err),
		kong.Exit(func(n int) { code = n }), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(io))
	if err != nil {
		return tell(io, fault.Wrap(fault.Usage, "daemon.Run", "", err))
	}
	parsed, err := parser.Parse(args)
	if code >= 0 { // help was asked for
		return code
	}
	if err != nil {
		return tell(io, fault.E(fault.Usage, "", "", fmt.Sprintf("%v (`cartwheeld --help` lists commands, `cartwheeld COMMAND --help` options)", err)))
	}
	return tell(io, parsed.Run())
}

// tell prints an error for people and returns its exit code.
func tell(io Stdio, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(io.Err, "cartwheeld: %s\n", fault.Explain(err))
	return fault.KindOf(err).ExitCode()
}

// versionCmd prints the version.
type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(io Stdio) error {
	_, err := fmt.Fprintln(io.Out, "cartwheeld", version.String())
	return err
}

// Run implements the command.
func (c *geoConfigCmd) Run(ctx context.Context, io Stdio) error { return c.run(ctx, io) }

// Run implements the command.
func (c *keyCmd) Run(io Stdio) error { return c.run(io) }
