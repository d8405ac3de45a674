//go:build linux || darwin

// Command memmount mounts the in-memory twin on a directory until it gets
// SIGINT or SIGTERM, for trying the public POSIX suites on a binding alone. It
// is a test helper, not part of what is shipped, and runs one mount.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/gofuse"
	"cartwheel.dev/clients/mount/memfs"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "memmount:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: memmount DIR")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m, err := gofuse.Mount(memfs.New(memfs.Options{Valid: time.Hour}).View(), mount.Options{
		Point: args[0], AllowOther: true, SetID: true, Devices: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	fmt.Println("mounted", m.Point())
	select {
	case <-ctx.Done():
		return m.Unmount(mount.UnmountLimit)
	case <-m.Done():
		return nil
	}
}
