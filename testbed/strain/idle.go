package strain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/trial"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Idle is a mount that has looked at very many files, and is then left alone.
type Idle struct {
	Options
	Files  int
	Memory int64         // --memory of the mount, in bytes
	Settle time.Duration // from the last look to the first measurement
	For    time.Duration // how long it is watched
}

// perFolder is how many files a folder has.
const perFolder = 500

// makers is how many files are made at once, and lookers how many are looked at.
const (
	makers  = 32
	lookers = 4
)

// Run makes the files without a mount, at a node that stands alone, mounts,
// looks at each, and watches the mount while nobody uses it.
func (o Idle) Run(ctx context.Context) (figures []Figure, err error) {
	err = trial.Run(ctx, trial.Options{Bin: o.Bin, In: o.In, Progress: o.Progress, Words: []string{"--no-mounts", "--sites", "here"}}, func(d *trial.Demo) error {
		if err := o.make(ctx, d); err != nil {
			return err
		}
		figures, err = o.measure(ctx, d)
		return err
	})
	return figures, err
}

func (o Idle) make(ctx context.Context, d *trial.Demo) (err error) {
	where, err := contact.Load(d.Contact)
	if err != nil {
		return err
	}
	c, err := cartwheel.Open(ctx, cartwheel.Options{Contact: where, Name: "strain"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for n := 0; n < o.Files; n += perFolder {
		folder := fmt.Sprint("d", n/perFolder)
		if _, err := c.Mkdir(ctx, mount.Caller{}, mount.Root, folder, 0o755); err != nil {
			return err
		}
		b, err := c.Objects(ctx, mount.Caller{}, folder)
		if err != nil {
			return err
		}
		all, ctx := errgroup.WithContext(ctx)
		all.SetLimit(makers)
		for i := range min(perFolder, o.Files-n) {
			all.Go(func() error { return b.Put(ctx, fmt.Sprint("f", i), []byte("x")) })
		}
		if err := all.Wait(); err != nil {
			return err
		}
		if n%(100*perFolder) == 0 {
			o.say("%d files were made", n)
		}
	}
	return nil
}

func (o Idle) measure(ctx context.Context, d *trial.Demo) (figures []Figure, err error) {
	point := filepath.Join(d.Folder, "point")
	if err := os.Mkdir(point, 0o755); err != nil {
		return nil, fault.FromOS("strain.Idle", point, err)
	}
	p, err := trial.Start(d.Program, []string{"mount", d.Contact, point, "--report-ready", "--memory", fmt.Sprint(o.Memory)}, o.Progress, "{")
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, p.End())
		_ = unix.Unmount(point, unix.MNT_DETACH) // it is gone, mostly
	}()
	if err := p.Ready(ctx); err != nil {
		return nil, err
	}
	fresh, err := trial.Look(p.PID())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	seen, err := lookAt(ctx, point)
	if err != nil {
		return nil, err
	}
	o.say("%d files were looked at in %v", seen, time.Since(began).Round(time.Second))
	if err := wait(ctx, o.Settle); err != nil {
		return nil, err
	}
	before, err := trial.Look(p.PID())
	if err == nil {
		err = wait(ctx, o.For)
	}
	if err != nil {
		return nil, err
	}
	after, err := trial.Look(p.PID())
	return []Figure{
		{"files that were looked at", float64(seen), ""}, {"memory of the mount before", mib(fresh.Resident), "MiB"},
		{"the most there was", mib(after.Peak), "MiB"}, {"memory when idle", mib(after.Resident), "MiB"},
		{"what its option names", mib(o.Memory), "MiB"}, {"processor when idle", 100 * float64(after.CPU-before.CPU) / float64(o.For), "% of one"},
	}, err
}

// lookAt looks at every file below a folder, as ls -lR does.
func lookAt(ctx context.Context, point string) (seen int, err error) {
	folders, err := os.ReadDir(point)
	if err != nil {
		return 0, err
	}
	counts := make([]int, len(folders))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(lookers)
	for i, folder := range folders {
		all.Go(func() error {
			files, err := os.ReadDir(filepath.Join(point, folder.Name()))
			for _, f := range files {
				var st unix.Stat_t
				if err := unix.Lstat(filepath.Join(point, folder.Name(), f.Name()), &st); err != nil {
					return fault.FromOS("strain.lookAt", f.Name(), err)
				}
				counts[i]++
			}
			return errors.Join(err, ctx.Err())
		})
	}
	err = all.Wait()
	for _, n := range counts {
		seen += n
	}
	return seen, err
}

// wait waits, unless ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
