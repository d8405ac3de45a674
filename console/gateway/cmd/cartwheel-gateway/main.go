// Command cartwheel-gateway serves the console, the admin API and the tree's files
// to browsers. It holds no logic: package gateway does the work.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"cartwheel.dev/console/gateway"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	code := gateway.Run(ctx, os.Args[1:], gateway.Stdio{Out: os.Stdout, Err: os.Stderr, Again: again})
	stop()
	os.Exit(code)
}
