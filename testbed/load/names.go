package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// NameOptions say which files MakeNames makes.
type NameOptions struct {
	Dir     string // there already
	First   int    // number of the first file, from 0
	Count   int    // how many; their numbers follow one another
	Each    int    // files of each folder in Dir
	Workers int    // at once
}

// NameResult is what became of many names.
type NameResult struct {
	Names   int     `json:"names"`
	Seconds float64 `json:"seconds"`
}

// NameFolder is the folder of the file with a number, from Dir.
func (o NameOptions) NameFolder(i int) string { return fmt.Sprintf("d%05d", i/o.Each) }

// nameRun is how many files a worker makes in one go. A folder is open meanwhile.
const nameRun = 500

// MakeNames makes empty files, and the folders that they are in. A second call with
// later numbers adds to what the first one made. All of it is on disk when MakeNames
// returns.
func MakeNames(ctx context.Context, o NameOptions) (NameResult, error) {
	const op fault.Op = "load.MakeNames"
	r := NameResult{Names: o.Count}
	if o.First < 0 || o.Count < 1 || o.Each < 1 || o.Workers < 1 {
		return r, fault.Errorf(fault.Usage, op, o.Dir, "first=%d count=%d each=%d workers=%d: one file, folder and worker at least", o.First, o.Count, o.Each, o.Workers)
	}
	began := time.Now()
	var folders []string
	for i := o.First - o.First%o.Each; i < o.First+o.Count; i += o.Each {
		folders = append(folders, filepath.Join(o.Dir, o.NameFolder(i)))
		if err := os.Mkdir(folders[len(folders)-1], 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return r, fault.FromOS(op, o.Dir, err)
		}
	}
	runs := (o.Count + nameRun - 1) / nameRun
	err := each(ctx, o.Workers, runs, func(ctx context.Context, n int) error {
		for i := o.First + n*nameRun; i < min(o.First+(n+1)*nameRun, o.First+o.Count) && ctx.Err() == nil; i++ {
			f, err := os.OpenFile(filepath.Join(o.Dir, o.NameFolder(i), fmt.Sprintf("f%08d", i)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	for _, d := range folders {
		err = errors.Join(err, syncFolder(d))
	}
	r.Seconds = time.Since(began).Seconds()
	return r, fault.FromOS(op, o.Dir, err)
}

// syncFolder waits until what was done in a folder is on disk.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ListNames reads the names of a folder, and keeps none of them.
func ListNames(ctx context.Context, dir string) (NameResult, error) {
	const op fault.Op = "load.ListNames"
	began := time.Now()
	var r NameResult
	d, err := os.Open(dir)
	if err != nil {
		return r, fault.FromOS(op, dir, err)
	}
	defer d.Close()
	for ctx.Err() == nil {
		names, err := d.Readdirnames(4096)
		r.Names += len(names)
		if errors.Is(err, io.EOF) {
			r.Seconds = time.Since(began).Seconds()
			return r, nil
		}
		if err != nil {
			return r, fault.FromOS(op, dir, err)
		}
	}
	return r, fault.FromOS(op, dir, ctx.Err())
}
