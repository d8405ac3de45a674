// Command cartwheeld is a node's process: the storage node itself, the
// embedded geo-config server, and the keys that name both. It holds no logic:
// package daemon does the work, and this file maps its error to an exit code.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cartwheel.dev/node/daemon"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := daemon.Run(ctx, os.Args[1:], daemon.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()})
	stop()
	os.Exit(code)
}
