//go:build windows || cgofuse

package winfsp

import (
	"context"
	"strings"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

const opResolve fault.Op = "winfsp.Resolve"

// place is what a path leads to. The lookup that found it is given back by done.
type place struct {
	dir  mount.Inode // where name is; Root for the root itself
	name string      // as stored
	node mount.Inode // 0: there is no such name
	attr mount.Attr
	path string // as stored, from the root
	done func()
}

// resolve follows a path, which is Windows's or libfuse's: slashes between
// names. Missing names on the way are errors; a missing last one is not.
func (b *binding) resolve(ctx context.Context, c mount.Caller, path string) (place, error) {
	at := place{dir: mount.Root, node: mount.Root, done: func() {}}
	held := []mount.Inode{}
	at.done = func() {
		for _, node := range held {
			b.fs.Forget(node, 1)
		}
	}
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	for i, name := range names {
		name = b.stored(name)
		e, err := b.lookup(ctx, c, at.node, &name)
		if err != nil {
			at.done()
			return place{}, err
		}
		if e.Node != 0 && e.Node != mount.Root {
			held = append(held, e.Node)
		}
		if e.Node == 0 && i < len(names)-1 {
			at.done()
			return place{}, fault.E(fault.NotFound, opResolve, path, "")
		}
		at = place{dir: at.node, name: name, node: e.Node, attr: e.Attr, path: at.path + "/" + name, done: func() {
			for _, node := range held {
				b.fs.Forget(node, 1)
			}
		}}
	}
	if at.path != "" {
		return at, nil
	}
	r, err := b.fs.GetAttr(ctx, c, mount.Root, 0)
	at.attr, at.path = r.Attr, "/"
	return at, err
}

// existing is resolve where a missing last name is an error too.
func (b *binding) existing(ctx context.Context, c mount.Caller, path string) (place, error) {
	at, err := b.resolve(ctx, c, path)
	if err == nil && at.node == 0 {
		at.done()
		return place{}, fault.E(fault.NotFound, opResolve, path, "")
	}
	return at, err
}

// lookup finds name in dir, in any case where the binding ignores case; then
// it becomes the stored name. A name in the very case asked for wins.
func (b *binding) lookup(ctx context.Context, c mount.Caller, dir mount.Inode, name *string) (mount.Entry, error) {
	e, err := b.fs.Lookup(ctx, c, dir, *name)
	missing := fault.Is(err, fault.NotFound) || err == nil && e.Node == 0
	if !missing {
		return e, err
	}
	if !b.foldCase {
		return mount.Entry{}, nil
	}
	found, err := b.findFolded(ctx, c, dir, *name)
	if err != nil || found == "" {
		return mount.Entry{}, err
	}
	*name = found
	e, err = b.fs.Lookup(ctx, c, dir, found)
	if fault.Is(err, fault.NotFound) {
		return mount.Entry{}, nil
	}
	return e, err
}

// folded is a sink that looks for a name in any case.
type folded struct{ want, found string }

// Add implements mount.DirSink.
func (f *folded) Add(e mount.DirEntry) bool {
	if strings.EqualFold(e.Name, f.want) {
		f.found = strings.Clone(e.Name)
		return false
	}
	return true
}

// AddPlus implements mount.DirSink; it is never called.
func (f *folded) AddPlus(mount.DirEntry, *mount.Entry) bool { return false }

func (b *binding) findFolded(ctx context.Context, c mount.Caller, dir mount.Inode, name string) (string, error) {
	o, err := b.fs.OpenDir(ctx, c, dir)
	if err != nil {
		return "", err
	}
	defer b.fs.ReleaseDir(dir, o.Handle)
	f := folded{want: name}
	err = b.fs.ReadDir(ctx, c, dir, o.Handle, 0, false, &f)
	return f.found, err
}

func (b *binding) stored(name string) string {
	if b.windows {
		return fromWindows(name)
	}
	return name
}

func (b *binding) shown(name string) string {
	if b.windows {
		return toWindows(name)
	}
	return name
}
