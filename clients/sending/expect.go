package sending

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// expect compares a copy with what a difference counts from, before anything changes.
type expect struct {
	root, base string
	doomed     []doomed // directories that go, the outer ones first
	replaced   string   // what went last, with all below it
	replacing  bool
}

// doomed is a directory that goes.
type doomed struct {
	path string
	left int // names that the stream did not remove
}

// differs is the error of a copy that is not as its last stream left it.
func (e *expect) differs(path, how string) error {
	return fault.E(fault.Conflict, "sending.expect", path, how+", so that the copy is no more what "+e.base+
		" was: undo that, or receive a whole stream at another place")
}

// name looks at one name. Without was, nothing may be there.
func (e *expect) name(path string, w *was) error {
	if err := e.leave(path); err != nil {
		return err
	}
	at, err := local(e.root, path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(at)
	gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	if err != nil && !gone {
		return fault.FromOS("sending.expect", at, err)
	}
	if w == nil {
		if !gone && (!e.replacing || path != e.replaced) {
			return e.differs(at, "is there and did not come with a stream")
		}
		return nil
	}
	if gone {
		return e.differs(at, "is missing")
	}
	got := wasOf(info)
	if got.kind != w.kind || got.kind == typeRegular && (got.size != w.size || !sameTime(got.mtime, w.mtime)) {
		return e.differs(at, "was changed since it was received")
	}
	return nil
}

// sameTime compares the time of a file with what it was set to. Some file systems keep whole
// seconds, and some every second one.
func sameTime(got, want int64) bool {
	if got == want {
		return true
	}
	whole := got%int64(time.Second) == 0
	return whole && max(got, want)-min(got, want) < 2*int64(time.Second)
}

// removed looks at a name that goes.
func (e *expect) removed(r *removed) error {
	if err := e.name(r.path, &r.was); err != nil {
		return err
	}
	if n := len(e.doomed); n > 0 {
		e.doomed[n-1].left--
	} else {
		e.replaced, e.replacing = r.path, true
	}
	if r.was.kind != typeDir {
		return nil
	}
	at, err := local(e.root, r.path)
	if err != nil {
		return err
	}
	list, err := names(at)
	e.doomed = append(e.doomed, doomed{r.path, len(list)})
	return err
}

// leave ends the directories that a name is not below.
func (e *expect) leave(path string) error {
	for n := len(e.doomed); n > 0 && !isBelow(path, e.doomed[n-1].path); n = len(e.doomed) {
		if err := e.pop(); err != nil {
			return err
		}
	}
	return nil
}

// pop ends the inmost directory.
func (e *expect) pop() error {
	d := e.doomed[len(e.doomed)-1]
	e.doomed = e.doomed[:len(e.doomed)-1]
	if d.left != 0 {
		at, err := local(e.root, d.path)
		if err != nil {
			return err
		}
		return e.differs(at, "is to be removed and has names that did not come with a stream")
	}
	return nil
}

// close ends all directories.
func (e *expect) close() error {
	for len(e.doomed) > 0 {
		if err := e.pop(); err != nil {
			return err
		}
	}
	return nil
}

// record looks at what a record changes.
func (e *expect) record(rec record) error {
	switch rec.kind {
	case recordObject:
		o, err := decodeObject(rec.body)
		if err != nil {
			return err
		}
		return e.name(o.path, o.was)
	case recordLink:
		l, err := decodeLink(rec.body)
		if err != nil {
			return err
		}
		return e.name(l.path, l.was)
	case recordRemoved:
		r, err := decodeRemoved(rec.body)
		if err != nil {
			return err
		}
		return e.removed(r)
	}
	return nil
}
