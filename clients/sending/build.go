package sending

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"cartwheel.dev/clients/earlier"
	"cartwheel.dev/geo-config/fault"
)

// builder makes a tree of records. Each of its steps may be done again: a step that was done
// leaves all as it is.
type builder struct {
	root string
	// spare is a path beside the tree, for names before they are at their places.
	spare string
	plain bool
	open  []level // the directories on the way to the name that came last
}

// level is a directory that is not finished.
type level struct {
	path string
	// dress has what it becomes at the end; nil: it becomes again what it was.
	dress    *object
	modified time.Time
	mode     fs.FileMode
	doomed   bool // it is removed at the end
}

// full is where a name is, once it is certain that no link leads elsewhere: all directories
// above it are real ones.
func (b *builder) full(path string) (string, error) {
	const op fault.Op = "sending.full"
	for i, c := range path {
		if c != '/' {
			continue
		}
		dir, err := local(b.root, path[:i])
		if err != nil {
			return "", err
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return "", fault.FromOS(op, dir, err)
		}
		if !info.IsDir() {
			return "", fault.E(fault.NotDirectory, op, dir, "the stream has names below it")
		}
	}
	return local(b.root, path)
}

// enter opens the directory of a name, and finishes those that it is not below.
func (b *builder) enter(path string) error {
	for len(b.open) > 0 && !isBelow(path, b.open[len(b.open)-1].path) {
		if err := b.leave(); err != nil {
			return err
		}
	}
	if path == "" {
		return nil
	}
	for {
		parent := "" // of those on the way, the first that is not open
		if n := len(b.open); n > 0 {
			last := b.open[n-1].path
			rest := strings.TrimPrefix(strings.TrimPrefix(path, last), "/")
			name, _, more := strings.Cut(rest, "/")
			if !more {
				return nil
			}
			parent = joined(last, name)
		}
		if err := b.push(level{path: parent}); err != nil {
			return err
		}
	}
}

// push opens a directory that is there. Its owner may write in it from then on.
func (b *builder) push(l level) error {
	const op fault.Op = "sending.push"
	dir, err := b.full(l.path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fault.FromOS(op, dir, err)
	}
	if !info.IsDir() {
		return fault.E(fault.NotDirectory, op, dir, "the stream has names below it")
	}
	l.modified, l.mode = info.ModTime(), info.Mode()
	if info.Mode()&0o700 != 0o700 {
		if err := os.Chmod(dir, info.Mode()|0o700); err != nil {
			return fault.FromOS(op, dir, err)
		}
	}
	b.open = append(b.open, l)
	return nil
}

// leave finishes the inmost directory.
func (b *builder) leave() error {
	const op fault.Op = "sending.leave"
	l := b.open[len(b.open)-1]
	dir, err := b.full(l.path)
	switch {
	case err != nil:
	case l.doomed:
		err = os.Remove(dir)
	case l.dress != nil:
		err = dress(dir, l.dress, b.plain)
	default:
		if l.mode&0o700 != 0o700 {
			err = os.Chmod(dir, l.mode)
		}
		if err == nil {
			err = setModified(dir, l.modified)
		}
	}
	if err == nil {
		b.open = b.open[:len(b.open)-1]
	}
	return fault.FromOS(op, dir, err)
}

// close finishes all directories.
func (b *builder) close() error {
	for len(b.open) > 0 {
		if err := b.leave(); err != nil {
			return err
		}
	}
	return nil
}

// object makes a name, or changes its attributes. The file with its content lies at written.
func (b *builder) object(o *object, written string) error {
	const op fault.Op = "sending.object"
	if err := b.enter(o.path); err != nil {
		return err
	}
	at, err := b.full(o.path)
	if err != nil {
		return err
	}
	switch {
	case o.isDir():
		if o.whole {
			err = os.Mkdir(at, 0o700)
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			return b.push(level{path: o.path, dress: o})
		}
	case o.whole && o.isRegular():
		err = os.Rename(written, at)
		if _, bad := os.Lstat(at); errors.Is(err, fs.ErrNotExist) && bad == nil {
			err = nil // it is there already
		}
	case o.whole:
		err = b.make(o, at)
	default:
		err = dress(at, o, b.plain)
	}
	return fault.FromOS(op, at, err)
}

// make makes what is no directory and has no content, and puts it to its place at once.
func (b *builder) make(o *object, at string) error {
	os.Remove(b.spare)
	var err error
	if o.mode&typeMask == typeLink {
		err = os.Symlink(o.target, b.spare)
	} else {
		err = earlier.MakeSpecial(b.spare, o.fileMode(), o.device)
	}
	if err != nil {
		return err
	}
	if err := dress(b.spare, o, b.plain); err != nil {
		return err
	}
	return os.Rename(b.spare, at)
}

// link gives a file a further name.
func (b *builder) link(l *link) error {
	if err := b.enter(l.path); err != nil {
		return err
	}
	first, err := b.full(l.first)
	if err != nil {
		return err
	}
	at, err := b.full(l.path)
	if err != nil {
		return err
	}
	os.Remove(b.spare)
	if err := os.Link(first, b.spare); err != nil {
		return fault.FromOS("sending.link", first, err)
	}
	err = os.Rename(b.spare, at)
	os.Remove(b.spare) // a rename between two names of one file does nothing
	return fault.FromOS("sending.link", at, err)
}

// remove removes a name; a directory goes once all below it is gone. What is of another type
// took its place already.
func (b *builder) remove(r *removed) error {
	const op fault.Op = "sending.remove"
	at, err := b.full(r.path)
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Lstat(at); err == nil && wasOf(info).kind != r.was.kind {
			return nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.NotDirectory) {
		return nil
	}
	if err != nil {
		return fault.FromOS(op, r.path, err)
	}
	if err := b.enter(r.path); err != nil {
		return err
	}
	if r.was.kind == typeDir {
		return b.push(level{path: r.path, doomed: true})
	}
	return fault.FromOS(op, at, os.Remove(at))
}

// record does what a record of a name says. Of a file with content, written tells where that
// lies.
func (b *builder) record(rec record, written func() string) error {
	switch rec.kind {
	case recordObject:
		o, err := decodeObject(rec.body)
		if err != nil {
			return err
		}
		from := ""
		if o.whole && o.isRegular() {
			from = written()
		}
		return b.object(o, from)
	case recordLink:
		l, err := decodeLink(rec.body)
		if err != nil {
			return err
		}
		return b.link(l)
	case recordRemoved:
		r, err := decodeRemoved(rec.body)
		if err != nil {
			return err
		}
		return b.remove(r)
	}
	return fault.E(fault.Corrupt, "sending.record", b.root, "the journal has a record that is of no name")
}
