// Command cartwheel mounts the tree, asks the cluster how it is, and runs a demo
// of it all. It holds no logic: package command does the work.
package main

import (
	"context"
	"os"

	"cartwheel.dev/clients/command"
	"cartwheel.dev/geo-config/version"
)

func main() {
	ctx, again, stop := command.Signals(context.Background())
	code := command.Run(ctx, os.Args, command.Stdio{Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Version: version.String(), Again: again})
	stop()
	os.Exit(code)
}
