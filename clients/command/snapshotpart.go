package command

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"cartwheel.dev/clients/where"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

// partAt returns a directory below a mount as a snapshot of a part of the tree names it: its
// path from the root of the tree on, and its object. Of the root itself these are empty.
func partAt(path string) (string, ids.Object, error) {
	const op fault.Op = "command.partAt"
	info, err := os.Stat(path)
	if err != nil {
		return "", 0, fault.FromOS(op, path, err)
	}
	if !info.IsDir() {
		return "", 0, fault.E(fault.NotDirectory, op, path, "a snapshot is of a directory: name the one that it is in")
	}
	data, err := getxattr(path, where.Attribute)
	switch {
	case errors.Is(err, fault.NoAttribute.Errno()) || errors.Is(err, errors.ErrUnsupported):
		return "", 0, fault.E(fault.NotFound, op, path, "is not below a Cartwheel mount")
	case err != nil:
		return "", 0, fault.FromOS(op, path, err)
	}
	var at status.Where
	if err := json.Unmarshal(data, &at); err != nil {
		return "", 0, fault.Wrap(fault.Corrupt, op, path, err)
	}
	if at.Object == ids.RootObject {
		return "", 0, nil
	}
	if err := syncDir(path); err != nil { // a new directory is at its node then
		return "", 0, fault.FromOS(op, path, err)
	}
	_, rest := mountOf(path)
	return rest, at.Object, nil
}

// syncDir sends what the mount did in a directory.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// partOf returns the part of the tree that a snapshot is of, at the mount in which the command
// runs; empty: the whole tree, or nobody knows.
func (e *env) partOf(name string) string {
	here, err := filepath.Abs(".")
	if err != nil {
		return ""
	}
	if _, err := getxattr(here, where.Attribute); err != nil {
		return "" // below no mount
	}
	point, _ := mountOf(here)
	list, err := e.newestSnapshots()
	if err != nil {
		return "" // the path is what the caller leaves it at
	}
	for _, s := range list.Snapshots {
		if s.Name == name && s.Path != "" {
			return filepath.Join(point, filepath.FromSlash(s.Path))
		}
	}
	return ""
}

// orPart is a path, or where none was given the part that one of some snapshots is of, or the
// current directory.
func (e *env) orPart(path string, names ...string) string {
	for _, name := range names {
		if path == "" {
			path = e.partOf(name)
		}
	}
	if path == "" {
		path, _ = filepath.Abs(".") // an error shows as that of the path
	}
	return path
}
