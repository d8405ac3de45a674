// Package gateway is the process in front of a cluster's console: Caddy with the
// modules of upstreams and treefs, a Caddyfile made from options, and the command
// line. Caddy has one configuration a process, so Run may be called once at a time.
package gateway

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/version"
)

const description = `The gateway of Cartwheel's console: it serves the console, the admin API and the tree's files to browsers.

` + fault.ExitHelp + `

  cartwheel-gateway run --contact contact.json --console console/dist --port 7080
  cartwheel-gateway caddyfile --contact contact.json --console console/dist --port 7080 > Caddyfile
  cartwheel-gateway run --config Caddyfile`

// Stdio is what the process writes, and the signals that ask it to read its
// configuration again.
type Stdio struct {
	Out, Err io.Writer
	Again    <-chan os.Signal // nil: never
}

// commands is the grammar of cartwheel-gateway's command line.
type commands struct {
	Run       runCmd       `cmd:"" help:"Serve until SIGTERM or Ctrl-C. SIGHUP reads the configuration again. Standard output says in one line of JSON when the gateway serves."`
	Caddyfile caddyfileCmd `cmd:"" help:"Print the Caddyfile that run makes from the same options."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
}

// Run runs the command that args name until ctx ends, and returns the process's
// exit code. Errors are told on Stdio.Err.
func Run(ctx context.Context, args []string, stdio Stdio) int {
	var c commands
	code := -1
	parser, err := kong.New(&c, kong.Name("cartwheel-gateway"), kong.Description(description), kong.Writers(stdio.Out, stdio.Err),
		kong.Exit(func(n int) { code = n }), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(stdio))
	if err != nil {
		return tell(stdio, fault.Wrap(fault.Usage, "gateway.Run", "", err))
	}
	parsed, err := parser.Parse(args)
	if code >= 0 { // help was asked for
		return code
	}
	if err != nil {
		return tell(stdio, fault.E(fault.Usage, "", "", fmt.Sprintf("%v (`cartwheel-gateway --help` lists commands, `cartwheel-gateway COMMAND --help` options)", err)))
	}
	return tell(stdio, parsed.Run())
}

// tell prints an error for people and returns its exit code.
func tell(stdio Stdio, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stdio.Err, "cartwheel-gateway: %s\n", fault.Explain(err))
	return fault.KindOf(err).ExitCode()
}

// runCmd serves.
type runCmd struct {
	Config string `help:"Serve by this Caddyfile, and take no other option." type:"path" short:"c"`
	Site   site   `embed:""`
}

// Run implements the command.
func (c *runCmd) Run(ctx context.Context, stdio Stdio) error {
	read := func() ([]byte, error) { return c.Site.render() }
	name := "options"
	if c.Config != "" {
		if c.Site.isGiven() {
			return fault.E(fault.Usage, "gateway.Run", "--config", "goes with no other option: write the others into the Caddyfile")
		}
		name = c.Config
		read = func() ([]byte, error) {
			text, err := os.ReadFile(c.Config)
			return text, fault.FromOS("gateway.Run", c.Config, err)
		}
	}
	return serve(ctx, name, read, stdio)
}

// caddyfileCmd prints the configuration.
type caddyfileCmd struct {
	Site site `embed:""`
}

// Run implements the command.
func (c *caddyfileCmd) Run(stdio Stdio) error {
	text, err := c.Site.render()
	if err != nil {
		return err
	}
	_, err = stdio.Out.Write(text)
	return err
}

// versionCmd prints the version.
type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(stdio Stdio) error {
	_, err := fmt.Fprintln(stdio.Out, "cartwheel-gateway", version.String())
	return err
}
