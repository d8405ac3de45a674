package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
)

// Real is a Disk over a directory of the operating system. It reaches files by
// os.Root, so that no name or link leads out of the directory.
type Real struct {
	dir  string
	root *os.Root
}

var (
	_ Disk     = (*Real)(nil)
	_ Measurer = (*Real)(nil)
	_ Locker   = (*Real)(nil)
)

// OpenReal makes the directory where it is missing and returns it as a disk.
func OpenReal(dir string) (*Real, error) {
	const op fault.Op = "disk.OpenReal"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, translate(op, dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, translate(op, dir, err)
	}
	return &Real{dir: dir, root: root}, nil
}

// Path returns the path of a name on the operating system.
func (d *Real) Path(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

// Close gives the directory back; open files stay open.
func (d *Real) Close() error { return d.root.Close() }

// Open implements Disk.
func (d *Real) Open(_ Site, name string, mode Mode) (File, error) {
	const op fault.Op = "disk.Open"
	flags := os.O_RDWR
	if mode&ReadOnly != 0 {
		flags = os.O_RDONLY
	}
	if mode&Create != 0 {
		flags |= os.O_CREATE
	}
	extra := systemFlags(mode)
	f, err := d.root.OpenFile(name, flags|extra, 0o600)
	if err != nil && mode&Direct != 0 && !errors.Is(err, fs.ErrNotExist) {
		// Not every file system has direct I/O; without it the rest holds.
		f, err = d.root.OpenFile(name, flags|systemFlags(mode&^Direct), 0o600)
	}
	if err != nil {
		return nil, translate(op, d.Path(name), err)
	}
	return &realFile{f: f, name: d.Path(name), syncEach: mode&Synced != 0 && !hasSyncedFlag}, nil
}

// Remove implements Disk.
func (d *Real) Remove(_ Site, name string) error {
	return translate("disk.Remove", d.Path(name), d.root.Remove(name))
}

// Rename implements Disk.
func (d *Real) Rename(_ Site, from, to string) error {
	return translate("disk.Rename", d.Path(to), d.root.Rename(from, to))
}

// List implements Disk.
func (d *Real) List(dir string) ([]string, error) {
	entries, err := fs.ReadDir(d.root.FS(), dir)
	if err != nil {
		return nil, translate("disk.List", d.Path(dir), err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// MakeDir implements Disk.
func (d *Real) MakeDir(site Site, dir string) error {
	const op fault.Op = "disk.MakeDir"
	if err := d.root.MkdirAll(dir, 0o700); err != nil {
		return translate(op, d.Path(dir), err)
	}
	return d.SyncDir(site, filepath.ToSlash(filepath.Dir(dir)))
}

// SyncDir implements Disk.
func (d *Real) SyncDir(_ Site, dir string) error {
	return translate("disk.SyncDir", d.Path(dir), SyncDirectory(d.Path(dir)))
}

// Usage implements Measurer.
func (d *Real) Usage() (Usage, error) {
	u, err := usageOf(d.dir)
	return u, translate("disk.Usage", d.dir, err)
}

// Lock implements Locker.
func (d *Real) Lock(name string, content []byte) (func() error, error) {
	const op fault.Op = "disk.Lock"
	path := d.Path(name)
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, translate(op, path, err)
	}
	if err := lockFile(f); err != nil {
		f.Close()
		if isHeld(err) {
			return nil, fault.Errorf(fault.Busy, op, path, "another process holds the lock")
		}
		return nil, translate(op, path, err)
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(content, 0)
	}
	if err != nil {
		f.Close()
		return nil, translate(op, path, err)
	}
	return f.Close, nil
}

type realFile struct {
	f        *os.File
	name     string
	syncEach bool // the system has no flag for Synced
}

func (r *realFile) ReadAt(p []byte, off int64) (int, error) { return r.f.ReadAt(p, off) }

func (r *realFile) WriteAt(site Site, p []byte, off int64) error {
	if _, err := r.f.WriteAt(p, off); err != nil {
		return translate("disk.WriteAt", r.name, err)
	}
	if r.syncEach {
		return r.Sync(site)
	}
	return nil
}

func (r *realFile) Sync(Site) error { return translate("disk.Sync", r.name, dataSync(r.f)) }

func (r *realFile) Allocate(_ Site, size int64) error {
	return translate("disk.Allocate", r.name, allocate(r.f, size))
}

func (r *realFile) Size() (int64, error) {
	info, err := r.f.Stat()
	if err != nil {
		return 0, translate("disk.Size", r.name, err)
	}
	return info.Size(), nil
}

func (r *realFile) Close() error { return r.f.Close() }

// translate gives an error of the operating system its kind.
func translate(op fault.Op, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.NotFound, op, name, err)
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(fault.Permission, op, name, err)
	case isNoSpace(err):
		return &fault.Error{Kind: fault.NoSpace, Op: op, Subject: name, Public: "the disk is full", Cause: err}
	}
	return fault.Wrap(fault.IO, op, name, err)
}
