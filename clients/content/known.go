package content

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

func (f *file) setVersion(attr *pb.Attr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.appending() != nil {
		// Whether this version has the append that is on its way, nobody can
		// tell: ask again when it is done.
		f.base = nil
		return
	}
	f.learn(attr)
}

// appending returns the append layer whose commit is on its way, or nil.
func (f *file) appending() *layer {
	if len(f.layers) > 0 && f.layers[0].appends && f.layers[0].sent {
		return f.layers[0]
	}
	return nil
}

// learn takes a version where it is not older than the newest seen.
func (f *file) learn(attr *pb.Attr) {
	if attr.GetVersion() < f.newest {
		return
	}
	f.newest = attr.GetVersion()
	v, ok := versionOf(attr)
	if !ok {
		if f.base == nil || f.base.serial != f.newest {
			f.base = nil
		}
		return
	}
	f.base, f.doubted = v, false
	f.rebase()
}

// rebase moves append layers to where the size below them now ends.
func (f *file) rebase() {
	size := f.base.size
	for _, l := range f.layers {
		if l.appends {
			l.move(size)
		}
		size = l.size(size)
	}
}

func (f *file) invalidate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.base = nil
	f.doubts++
}

// knownLocked reports whether base is the current version, as far as this client was
// told; the mutex is held.
func (f *file) knownLocked() bool { return f.base != nil && !f.doubted }

// size is the file's size with everything dirty; the base must be known.
func (f *file) size() uint64 {
	size := f.base.size
	for _, l := range f.layers {
		size = l.size(size)
	}
	return size
}

func (f *file) overlay(attr *pb.Attr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.layers) == 0 {
		if attr.GetVersion() > f.newest {
			f.base = nil // what is shown of the file is newer than what would be read
		}
		return false
	}
	size := attr.GetSize()
	if f.base != nil {
		size = f.base.size
	}
	var last time.Time
	for _, l := range f.layers {
		size = l.size(size)
		last = l.mtime
	}
	attr.Size = size
	if ns := last.UnixNano(); ns > attr.GetMtimeNs() && ns > attr.GetCtimeNs() { // else a time was set since
		attr.MtimeNs, attr.CtimeNs = ns, ns
	}
	return true
}

// versionTries bounds how often a version is asked for that turns out to be
// older than what this client's own commits made meanwhile.
const versionTries = 20

// lockKnown locks the file's mutex with the current version known, asking for
// it where need be.
func (f *file) lockKnown(ctx context.Context) error {
	const op fault.Op = "content.lockKnown"
	for try := 0; ; try++ {
		f.mu.Lock()
		if f.knownLocked() {
			return nil
		}
		busy, doubts := f.appending(), f.doubts
		f.mu.Unlock()
		if err := busy.wait(ctx); err != nil && !isClosed(busy.done) {
			return err
		}
		attr, err := f.core.remote.Version(ctx, f.object)
		if err != nil {
			return err
		}
		if _, ok := versionOf(attr); !ok {
			return fault.E(fault.Corrupt, op, f.object.String(), "the version's content is missing in the answer")
		}
		f.setVersion(attr)
		f.mu.Lock()
		if f.base != nil && f.doubts != doubts {
			f.doubted = true
			return nil
		}
		f.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return fault.Wrap(fault.Interrupted, op, f.object.String(), err)
		}
		if try == versionTries {
			return fault.Errorf(fault.Stale, op, f.object.String(), "the version answered, %d, is older than one seen before", attr.GetVersion())
		}
	}
}

// versionsRead bounds the versions that one call tries to read.
const versionsRead = 10

// movedOn reports whether a read failed only because its version is no more: the
// members drop what no version names, and a member whose state was copied never
// had it. The file is then at another version, which is to be read instead.
// Where it is at the same version still, something was lost, and the error stands.
func (f *file) movedOn(ctx context.Context, read *version, err error) bool {
	if read == nil || !fault.Is(err, fault.Missing) {
		return false
	}
	f.invalidate()
	if f.lockKnown(ctx) != nil {
		return false
	}
	defer f.mu.Unlock()
	return f.base.serial != read.serial
}
