package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Store holds small objects by name.
type Store interface {
	Put(ctx context.Context, name string, data []byte) error
	Get(ctx context.Context, name string) ([]byte, error)
	List(ctx context.Context) ([]string, error)
	Delete(ctx context.Context, name string) error
	// Forget drops what is cached at this side, so that the next question is
	// asked.
	Forget(ctx context.Context) error
}

// Folder is a Store in a folder, an object a file.
type Folder string

var _ Store = Folder("")

// Put makes the file; it is acknowledged when that returns.
func (f Folder) Put(_ context.Context, name string, data []byte) error {
	return write(filepath.Join(string(f), name), 0o644, data)
}

// Get reads the file.
func (f Folder) Get(_ context.Context, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(f), name))
}

// List reads the folder's names.
func (f Folder) List(context.Context) ([]string, error) {
	d, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}

// Delete removes the file.
func (f Folder) Delete(_ context.Context, name string) error {
	return os.Remove(filepath.Join(string(f), name))
}

// Forget drops the mount's caches and the kernel's.
func (f Folder) Forget(context.Context) error { return Cold(string(f)) }

// ObjectOptions say how many objects and how large.
type ObjectOptions struct {
	Count int
	Bytes int
	Lists int // how often all names are listed
	Seed  uint64
	// Pause between two operations lets what follows one end before the next.
	Pause time.Duration
}

// ObjectResult is how long each operation took, in milliseconds, in order.
type ObjectResult struct {
	Put    []float64 `json:"put_ms"`
	Get    []float64 `json:"get_ms"`
	List   []float64 `json:"list_ms"`
	Delete []float64 `json:"delete_ms"`
}

// DoObjects puts all objects, gets each, lists them, and deletes each, one by
// one; what is got and listed was not cached. It fails where an answer is
// wrong.
func DoObjects(ctx context.Context, s Store, o ObjectOptions) (ObjectResult, error) {
	const op fault.Op = "load.DoObjects"
	var r ObjectResult
	name := func(i int) string { return fmt.Sprintf("object-%06d", i) }
	step := func(into *[]float64, what string, fn func() error) error {
		took, err := timed(fn)
		if err != nil {
			return fault.FromOS(op, what, err)
		}
		*into = append(*into, milliseconds(took))
		return wait(ctx, o.Pause)
	}
	for i := range o.Count {
		if err := step(&r.Put, "put "+name(i), func() error { return s.Put(ctx, name(i), content(o.Seed, uint64(i), o.Bytes)) }); err != nil {
			return r, err
		}
	}
	for i := range max(1, o.Lists) {
		if err := s.Forget(ctx); err != nil {
			return r, err
		}
		var names []string
		err := step(&r.List, "list", func() (err error) { names, err = s.List(ctx); return err })
		if err == nil && len(names) != o.Count {
			err = fault.Errorf(fault.Corrupt, op, "list", "round %d answered %d names, want %d", i+1, len(names), o.Count)
		}
		if err != nil {
			return r, err
		}
	}
	if err := s.Forget(ctx); err != nil {
		return r, err
	}
	for i := range o.Count {
		var data []byte
		err := step(&r.Get, "get "+name(i), func() (err error) { data, err = s.Get(ctx, name(i)); return err })
		if err == nil && !bytes.Equal(data, content(o.Seed, uint64(i), o.Bytes)) {
			err = fault.E(fault.Corrupt, op, name(i), "does not hold what was put")
		}
		if err != nil {
			return r, err
		}
	}
	for i := range o.Count {
		if err := step(&r.Delete, "delete "+name(i), func() error { return s.Delete(ctx, name(i)) }); err != nil {
			return r, err
		}
	}
	return r, nil
}

// content is what an object holds: noise that nothing makes smaller, the same
// for the same seed and number.
func content(seed, number uint64, size int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], number)
	data := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(data) // it never fails
	return data
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
