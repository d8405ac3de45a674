// Package sidecar opens the small Pebbles that a node keeps beside its store: each with
// a log of its own, for what no journal of a slice has. It keeps nothing itself, and may
// be used by many goroutines.
package sidecar

import (
	"errors"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
)

// Exists reports whether a directory may hold one.
func Exists(files vfs.FS, dir string) (bool, error) {
	list, err := files.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(list) > 0, fault.Wrap(fault.IO, "sidecar.Exists", dir, err)
}

// Open opens one, or makes it. The caller closes it.
func Open(files vfs.FS, dir string) (*pebble.DB, error) {
	p, err := pebble.Open(dir, &pebble.Options{
		FS: files, FormatMajorVersion: pebble.FormatNewest, MemTableSize: 4 << 20, MaxOpenFiles: 64,
		CompactionConcurrencyRange: func() (int, int) { return 1, 1 }, Logger: silent{},
	})
	return p, fault.Wrap(fault.IO, "sidecar.Open", dir, err)
}

// silent is a pebble.Logger: what fails comes back as an error.
type silent struct{}

// Infof implements pebble.Logger.
func (silent) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (silent) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger. It panics: Pebble cannot go on, and nothing may be
// acknowledged.
func (silent) Fatalf(format string, _ ...any) { panic("sidecar: " + format) }
