package sending

import (
	"bytes"
	"path/filepath"
	"slices"

	"cartwheel.dev/geo-config/fault"
)

// at reads the facts of a name at one of both times; nil: it is not there then.
func at(root, rel string, there bool) (*facts, error) {
	if !there {
		return nil, nil
	}
	return look(filepath.Join(root, filepath.FromSlash(rel)))
}

// visit sends a name with all below it.
func (x *sender) visit(rel string, wasThere, isThere bool) error {
	if x.ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, "sending.visit", rel, x.ctx.Err())
	}
	was, err := at(x.then, rel, wasThere)
	if err != nil {
		return err
	}
	is, err := at(x.now, rel, isThere)
	if err != nil {
		return err
	}
	if was != nil && (is == nil || was.isDir() != is.isDir()) {
		if err := x.remove(rel, was); err != nil {
			return err
		}
		was = nil
	}
	if is == nil {
		return nil
	}
	x.src.Progress.Names.Add(1)
	if !is.isDir() && is.Links > 1 {
		return x.linked(rel, was, is)
	}
	if _, err := x.object(rel, was, is); err != nil || !is.isDir() {
		return err
	}
	return x.below(rel, was, is)
}

// below sends the names of a directory, of both times in one order.
func (x *sender) below(rel string, was, is *facts) error {
	now, err := names(is.path)
	if err != nil {
		return err
	}
	var then []string
	if was != nil {
		if then, err = names(was.path); err != nil {
			return err
		}
	}
	for len(now) > 0 || len(then) > 0 {
		isThere := len(now) > 0 && (len(then) == 0 || now[0] <= then[0])
		wasThere := len(then) > 0 && (len(now) == 0 || then[0] <= now[0])
		name := ""
		if isThere {
			name, now = now[0], now[1:]
		}
		if wasThere {
			name, then = then[0], then[1:]
		}
		if err := x.visit(joined(rel, name), wasThere, isThere); err != nil {
			return err
		}
	}
	return nil
}

func joined(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// put writes a record, unless it was sent before.
func (x *sender) put(kind byte, rel string, body []byte) error {
	if x.resume == nil {
		return x.out.record(kind, body)
	}
	if x.resume.kind == kind && x.resume.path == rel {
		x.resume = nil
	}
	return nil
}

// remove sends that a name is no more, and all below it.
func (x *sender) remove(rel string, was *facts) error {
	r := removed{rel, *was.was()}
	if err := x.put(recordRemoved, rel, r.encode()); err != nil || !was.isDir() {
		return err
	}
	list, err := names(was.path)
	if err != nil {
		return err
	}
	for _, name := range list {
		if err := x.visit(joined(rel, name), true, false); err != nil {
			return err
		}
	}
	return nil
}

// linked sends a file with several names: under its first one, and as a link under others.
func (x *sender) linked(rel string, was, is *facts) error {
	f := x.links[is.Number]
	if f == nil {
		if len(x.links) >= maxLinked {
			return fault.Errorf(fault.TooLarge, "sending.linked", rel, "more than %d files have further names elsewhere: send parts of the tree", maxLinked)
		}
		f = &firstName{path: rel, left: is.Links - 1}
		if was != nil {
			f.was = was.Number
		}
		x.links[is.Number] = f
		var err error
		f.whole, err = x.object(rel, was, is)
		return err
	}
	if f.left--; f.left == 0 {
		delete(x.links, is.Number)
	}
	if !f.whole && was != nil && was.Number == f.was {
		return nil // the receiver's names are of one file, too
	}
	l := link{rel, f.path, was.was()}
	return x.put(recordLink, rel, l.encode())
}

// object sends a name by itself where it differs, and reports whether the receiver makes it
// anew.
func (x *sender) object(rel string, was, is *facts) (whole bool, err error) {
	sentHere := x.resume != nil && x.resume.kind == recordObject && x.resume.path == rel
	if x.resume != nil && !sentHere && (is.isDir() || is.Links <= 1) {
		return false, nil // no other name asks
	}
	o, err := is.object(rel)
	if err != nil {
		return false, err
	}
	change := wholeChange
	if was != nil {
		if change, err = x.compare(was, is, o); err != nil || change == noChange {
			return false, err
		}
	}
	o.whole, o.was = change == wholeChange, was.was()
	if x.resume != nil && !sentHere {
		return o.whole, nil
	}
	from := uint64(0)
	if sentHere {
		from = x.resume.offset
	}
	if err := x.put(recordObject, rel, o.encode()); err != nil || !o.whole || !is.isRegular() {
		return o.whole, err
	}
	return true, x.content(was, is, from)
}

// change says how a name differs between two times.
type change int

const (
	noChange change = iota
	attributeChange
	wholeChange
)

// compare finds how a name differs. What the receiver has under several names is never
// changed in place: they may be of several files by now.
func (x *sender) compare(was, is *facts, o *object) (change, error) {
	same := is.Number != 0 && was.Number^x.masks[1] == is.Number^x.masks[0]
	if same && is.Changed == was.Changed && is.mtime() == was.mtime() && is.size() == was.size() && is.info.Mode() == was.info.Mode() {
		return noChange, nil
	}
	if is.info.Mode().Type() != was.info.Mode().Type() || is.size() != was.size() || is.target != was.target || is.Device != was.Device {
		return wholeChange, nil
	}
	before, err := was.object(o.path)
	if err != nil {
		return noChange, err
	}
	attributes := o.mode == before.mode && o.uid == before.uid && o.gid == before.gid && o.mtime == before.mtime &&
		slices.EqualFunc(o.xattrs, before.xattrs, func(a, b xattr) bool { return a.name == b.name && bytes.Equal(a.value, b.value) })
	if is.isRegular() {
		equal := o.mtime == before.mtime
		if equal {
			if equal, err = x.equal(was, is); err != nil {
				return noChange, err
			}
		}
		if !equal {
			return wholeChange, nil
		}
	}
	single := is.isDir() || was.Links <= 1
	switch {
	case attributes && (single || same):
		return noChange, nil
	case is.isDir() || is.isRegular() && single:
		return attributeChange, nil
	}
	return wholeChange, nil
}
