package inodes

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Opening is an open that is counted and not answered yet.
type Opening struct {
	Object ids.Object
	// Fresh: the kernel has no pages yet.
	Fresh   bool
	changed uint64 // the node's when it began
	// Dir and Name are what the file was found by, as far as that is known.
	Dir  ids.Object
	Name string
}

// Opened is what an open comes to.
type Opened struct {
	// IsCurrent is false where a revocation came after the open began: the
	// attributes may be older.
	IsCurrent bool
	// KeepPages: the kernel's pages are those of the version.
	KeepPages bool
	// NoFlush: the kernel need not say when the descriptor is closed.
	NoFlush bool
	// Fill is set where the caller is to fill the kernel's pages, and to end it.
	// Filling is set where another open does: it is closed when they are filled.
	Fill    *Fill
	Filling <-chan struct{}
}

// CountOpen counts an open of a file that cannot be gone.
func (t *Table) CountOpen(o ids.Object, flags mount.OpenFlags) Opening {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.countLocked(o, flags)
}

// BeginOpen counts an open of a file, once it is decided whether the file goes.
// It returns an error where ctx ends before.
func (t *Table) BeginOpen(ctx context.Context, o ids.Object, flags mount.OpenFlags) (Opening, error) {
	for {
		b, decided := t.tryOpen(o, flags)
		if decided == nil {
			return b, nil
		}
		select {
		case <-decided:
		case <-ctx.Done():
			return Opening{}, fault.Wrap(fault.KindOf(ctx.Err()), "inodes.BeginOpen", o.String(), ctx.Err())
		}
	}
}

// tryOpen is CountOpen, unless the file may be gone: then it returns what is
// closed when that is decided.
func (t *Table) tryOpen(o ids.Object, flags mount.OpenFlags) (Opening, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if list := t.leaving[o]; len(list) > 0 {
		return Opening{}, list[0]
	}
	return t.countLocked(o, flags), nil
}

// countLocked is CountOpen with the mutex held.
func (t *Table) countLocked(o ids.Object, flags mount.OpenFlags) Opening {
	n := t.getLocked(Plain(o), o)
	n.opens++
	if flags.Writes() {
		n.writers++
	}
	t.open[n] = struct{}{}
	b := Opening{Object: o, Fresh: !n.paged, changed: n.changed}
	if flags.Writes() {
		b.Dir, b.Name = t.lookups.foundBy(o)
	}
	return b
}

// FinishOpen ends the wait for an open's attributes. version is the file's, and
// mayFill says whether the caller has content for the kernel.
func (t *Table) FinishOpen(b *Opening, version uint64, mayFill bool) (out Opened) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.getLocked(Plain(b.Object), b.Object)
	out.IsCurrent = n.changed == b.changed
	out.KeepPages = n.pages != 0 && n.pages == version && n.stale == 0 && out.IsCurrent
	out.NoFlush = n.writers == 0 && !n.locked
	n.pages = version
	first, filling := t.pageLocked(n, mayFill && out.IsCurrent)
	if first {
		out.Fill = &Fill{t: t, n: n}
	} else {
		out.Filling = filling
	}
	return out
}

// EndOpen uncounts an open: the file was closed, or never opened. Where no other
// open is left, it calls last, under its mutex. letGo says that the caller is to
// tell the file's active so, and then to call l.End: until then, new opens of the
// file wait.
func (t *Table) EndOpen(o ids.Object, flags mount.OpenFlags, last func()) (l Leaving, letGo bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.knownLocked(o)
	if n == nil {
		return l, false
	}
	if n.opens == 1 {
		last()
	}
	if flags.Writes() {
		n.writers--
	}
	if n.opens--; n.opens == 0 {
		delete(t.open, n)
		if n.held {
			n.held, letGo = false, true
			l = Leaving{o, t.leaveLocked(o)}
		}
	}
	t.dropUnusedLocked(n)
	return l, letGo
}

// Open returns the open objects that a condition holds for. It calls which under
// its mutex.
func (t *Table) Open(which func(ids.Object) bool) (out []ids.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.open {
		if which(n.object) {
			out = append(out, n.object)
		}
	}
	return out
}

// NoteRangeLock notes that a process's byte ranges of a file were locked.
func (t *Table) NoteRangeLock(o ids.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.knownLocked(o); n != nil {
		n.locked = true
	}
}

// MarkHeld notes that the active holds a file that is open here, though it may
// have no name.
func (t *Table) MarkHeld(o ids.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.knownLocked(o); n != nil {
		n.held = true
	}
}

// IsHeld reports whether the active holds a file that is open here.
func (t *Table) IsHeld(o ids.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.knownLocked(o)
	return n != nil && n.held
}
