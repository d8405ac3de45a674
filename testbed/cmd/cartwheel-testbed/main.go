// Command cartwheel-testbed emulates a wide area on this machine and runs
// Cartwheel and experiments on it. It holds no logic: package command of the
// testbed does the work.
package main

import (
	"context"
	"os"

	signals "cartwheel.dev/clients/command"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/testbed/cli"
)

func main() {
	ctx, again, stop := signals.Signals(context.Background())
	code := cli.Run(ctx, os.Args, cli.Stdio{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Version: version.String(), Again: again,
	})
	stop()
	os.Exit(code)
}
