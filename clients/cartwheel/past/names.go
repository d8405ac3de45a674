package past

import (
	"context"
	"log/slog"
	"strings"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/logattr"
)

// isCue parses a name that may be the cue .Snapshot.
func isCue(name string) (q cue.Cue, is bool, err error) {
	if len(name) == 0 || name[0] != '.' {
		return cue.Cue{}, false, nil
	}
	head, _, _ := strings.Cut(name, "=")
	if !strings.EqualFold(head, cue.Snapshot.String()) {
		return cue.Cue{}, false, nil
	}
	return cue.Parse(name)
}

// Lookup implements mount.Names.
func (f *FileSystem) Lookup(ctx context.Context, who mount.Caller, dir mount.Inode, name string) (mount.Entry, error) {
	q, is, bad := isCue(name)
	if !isPast(dir) {
		if !is {
			return f.Inner.Lookup(ctx, who, dir, name)
		}
		o, cues, ok := f.opt.Find(dir)
		if !ok {
			return mount.Entry{}, staleNode
		}
		return f.enter(ctx, place{object: o, cues: cues}, dir, name, q, bad)
	}
	n := f.table.get(dir)
	switch {
	case n == nil:
		return mount.Entry{}, staleNode
	case is:
		return f.enter(ctx, n.place, dir, name, q, bad)
	case len(name) > mount.NameMax:
		return mount.Entry{}, fault.E(fault.NameTooLong, "past.Lookup", "", "")
	}
	ctx, done := within(ctx, n)
	defer done()
	if name == "." || name == ".." {
		return f.dot(ctx, n, name)
	}
	if q, is, err := cue.Parse(name); is {
		return f.below(ctx, n, name, q, err)
	}
	x, err := f.find(ctx, who, n, name)
	if err != nil {
		return mount.Entry{}, err
	}
	if x.object == 0 {
		return mount.Entry{EntryValid: valid}, nil
	}
	return f.show(ctx, n, name, x)
}

// show answers a lookup with what a name meant.
func (f *FileSystem) show(ctx context.Context, dir *node, name string, x found) (mount.Entry, error) {
	n := f.table.look(place{x.object, dir.at, dir.cues}, dir.id, name)
	n.note(x.ticket)
	if x.attr != nil {
		return entry(n, f.learn(n, x.attr)), nil
	}
	a, err := f.attr(ctx, n)
	if err != nil {
		f.table.forget(n.id, 1)
		return mount.Entry{}, err
	}
	return entry(n, a), nil
}

// enter answers the lookup of a cue .Snapshot: its directory as it was.
func (f *FileSystem) enter(ctx context.Context, p place, dir mount.Inode, name string, q cue.Cue, err error) (mount.Entry, error) {
	const op fault.Op = "past.enter"
	keep := valid
	ctx, done := within(ctx, &node{place: p})
	defer done()
	if err == nil {
		p.at, keep, err = f.moment(ctx, q, p.object, p.cues)
	}
	if err == nil {
		p.cues, err = p.cues.With(q)
	}
	if err != nil {
		return mount.Entry{}, f.refuse(name, err)
	}
	n := f.table.look(p, dir, name)
	a, err := f.attr(ctx, n)
	switch {
	case fault.Is(err, fault.Stale):
		err = fault.E(fault.NotFound, op, name, "the directory did not exist then")
	case err == nil && a.Mode&mount.TypeMask != mount.TypeDir:
		err = fault.E(fault.NotDirectory, op, name, "")
	}
	if err != nil {
		f.table.forget(n.id, 1)
		return mount.Entry{}, f.refuse(name, err)
	}
	e := entry(n, a)
	e.EntryValid = keep
	return e, nil
}

// below answers the lookup of another cue below .Snapshot: its directory's other name.
func (f *FileSystem) below(ctx context.Context, dir *node, name string, q cue.Cue, err error) (mount.Entry, error) {
	p := dir.place
	if err == nil {
		p.cues, err = p.cues.With(q)
	}
	if err == nil {
		err = p.cues.Supported()
	}
	if err != nil {
		return mount.Entry{}, f.refuse(name, err)
	}
	a, err := f.attr(ctx, dir)
	if err != nil {
		return mount.Entry{}, err
	}
	if a.Mode&mount.TypeMask != mount.TypeDir {
		return mount.Entry{}, fault.E(fault.NotDirectory, "past.below", name, "")
	}
	n := f.table.look(p, dir.id, name)
	n.learn(a)
	return entry(n, a), nil
}

// refuse logs why a cue cannot be honoured: a program is told an error number alone.
func (f *FileSystem) refuse(name string, err error) error {
	f.opt.Logger.Warn("a cue cannot be honoured", slog.String("cue", name), logattr.Err(err))
	return err
}

// dot answers the lookups of "." and "..", which exported mounts ask for.
func (f *FileSystem) dot(ctx context.Context, n *node, name string) (mount.Entry, error) {
	a, err := f.attr(ctx, n)
	if err != nil {
		return mount.Entry{}, err
	}
	x := found{object: n.object, attr: a}
	if name == ".." {
		x = found{object: ids.Object(a.Parent)}
	}
	return f.show(ctx, n, "", x)
}

// Forget implements mount.Names.
func (f *FileSystem) Forget(id mount.Inode, count uint64) {
	if !isPast(id) {
		f.Inner.Forget(id, count)
		return
	}
	f.table.forget(id, count)
}

// Readlink implements mount.Names.
func (f *FileSystem) Readlink(ctx context.Context, who mount.Caller, id mount.Inode) ([]byte, error) {
	if !isPast(id) {
		return f.Inner.Readlink(ctx, who, id)
	}
	n := f.table.get(id)
	if n == nil {
		return nil, staleNode
	}
	ctx, done := within(ctx, n)
	defer done()
	a, err := f.attr(ctx, n)
	if err != nil {
		return nil, err
	}
	if a.Mode&mount.TypeMask != mount.TypeSymlink {
		return nil, fault.E(fault.Invalid, "past.Readlink", n.object.String(), "")
	}
	return append([]byte(nil), a.Target...), nil
}

// Walk implements mount.PathWalker. A path that leads through the past is walked name
// by name.
func (f *FileSystem) Walk(ctx context.Context, who mount.Caller, from mount.Inode, path string) (mount.Entry, error) {
	const op fault.Op = "past.Walk"
	var parts []string
	past := isPast(from)
	for _, name := range strings.Split(path, "/") {
		if name == "" || name == "." {
			continue
		}
		_, is, _ := isCue(name)
		past = past || is
		parts = append(parts, name)
	}
	if !past {
		return f.Inner.Walk(ctx, who, from, path)
	}
	if len(parts) == 0 {
		return f.Lookup(ctx, who, from, ".")
	}
	at := from
	for i, name := range parts {
		e, err := f.Lookup(ctx, who, at, name)
		if at != from {
			f.Forget(at, 1)
		}
		switch {
		case err != nil || i == len(parts)-1:
			return e, err
		case e.Node == 0:
			return mount.Entry{}, fault.E(fault.NotFound, op, path, "")
		case e.Attr.Mode&mount.TypeMask != mount.TypeDir:
			f.Forget(e.Node, 1)
			return mount.Entry{}, fault.E(fault.NotDirectory, op, path, "")
		}
		at = e.Node
	}
	return mount.Entry{}, nil // not reached: the last name returns
}
