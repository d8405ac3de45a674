// Package load is the work that experiments have done on a file system: trees
// copied and searched, small objects put and got, one large file streamed, and
// writers that note what was acknowledged so that it can be looked for later.
// It works on plain folders, which may be mounts, or through the client
// library; it starts no cluster, knows no network, and judges nothing. Each
// work is a function, and a command that prints its result as JSON, so that it
// can run as a process of its own on an emulated host. The works start their
// own goroutines and end them.
package load

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"cartwheel.dev/geo-config/fault"
)

// dropAttribute, when set on anything in a Cartwheel mount, drops that mount's
// own caches; other file systems refuse it, which is fine.
const dropAttribute = "user.cartwheel.drop-caches"

// Cold drops the caches of the mount that holds dir and the kernel's. What was
// written is sent first.
func Cold(dir string) error {
	unix.Sync()
	_ = unix.Setxattr(dir, dropAttribute, []byte("1"), 0) // refused by file systems that have no such cache
	f, err := os.OpenFile("/proc/sys/vm/drop_caches", os.O_WRONLY, 0)
	if err != nil {
		return fault.FromOS("load.Cold", dir, err)
	}
	_, err = f.WriteString("3\n")
	return fault.FromOS("load.Cold", dir, errors.Join(err, f.Close()))
}

// each calls fn for the numbers below n from several workers, until one fails.
func each(ctx context.Context, workers, n int, fn func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	g.Go(func() error {
		defer close(next)
		for i := range n {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range max(1, workers) {
		g.Go(func() error {
			for i := range next {
				if err := fn(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// write makes a file that must not be there; its name is safe, and what it
// holds acknowledged, when write has returned without error.
func write(path string, mode os.FileMode, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// milliseconds is a duration as figures show it.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timed returns how long fn took.
func timed(fn func() error) (time.Duration, error) {
	start := time.Now()
	err := fn()
	return time.Since(start), err
}
