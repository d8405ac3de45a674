// Command bench-store measures the file system against the chunk service below it;
// see package bench.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench.StoreMain(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench-store:", err)
		os.Exit(fault.KindOf(err).ExitCode())
	}
}
