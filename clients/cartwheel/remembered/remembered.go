// Package remembered keeps what nodes said, beyond the leases, for reads that take it
// where no node answers in time: those below .EventualConsistency, and those of the
// directories on the way to a cue that bounds the waiting. It asks no node.
package remembered

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

const (
	// maxKept bounds each kind of what is kept, twice over: see recent.
	maxKept = 2048
	// maxUp bounds the directories above a cue that become part of its way.
	maxUp = 256
	// awayFor is for how long nobody is asked about the ways after a node did not
	// answer.
	awayFor = time.Second
)

// place is a name in a directory.
type place struct {
	dir  ids.Object
	name string
}

// Table keeps it. It is safe for use by many goroutines; its lock is held over no
// call.
type Table struct {
	clock boottime.Func

	mu    sync.Mutex // guards below
	attrs recent[ids.Object, *pb.Attr]
	at    recent[place, names.Entry]
	// led has the directories that lead to cues, with the terms of these.
	led   recent[ids.Object, cue.Terms]
	until time.Duration // nobody is asked about a way before
}

// New returns a Table that keeps nothing yet.
func New(clock boottime.Func) *Table { return &Table{clock: clock} }

// NoteAttr keeps an object's attributes, which must not be changed any more.
func (t *Table) NoteAttr(a *pb.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteLocked(a)
}

// noteLocked keeps attributes unless newer ones are kept, or the same with more; with
// mu held.
func (t *Table) noteLocked(a *pb.Attr) {
	o := ids.Object(a.Object)
	old, ok := t.attrs.get(o)
	if ok && (isNewer(old, a) || old.Change == a.Change && a.Content == nil) {
		return
	}
	if ok && a.Content == nil && old.Version == a.Version {
		a = proto.Clone(a).(*pb.Attr)
		a.Content = old.Content
	}
	t.attrs.put(o, a)
}

// isNewer reports whether an object was changed after it was as b says. What a side log
// has is newer than what its active has, until that has merged it.
func isNewer(a, b *pb.Attr) bool {
	const side = uint64(tree.FirstOfSide)
	if a.Change >= side && b.Change < side {
		return a.Version >= side && b.SideVersion < a.Version
	}
	return a.Change > b.Change
}

// NoteEntry keeps what a name means.
func (t *Table) NoteEntry(dir ids.Object, name string, e names.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at.put(place{dir, name}, e)
}

// Attr returns an object's attributes as they were known last.
func (t *Table) Attr(o ids.Object) (*pb.Attr, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attrs.get(o)
}

// Entry returns what a name meant last.
func (t *Table) Entry(dir ids.Object, name string) (names.Entry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at.get(place{dir, name})
}

// NoteDir keeps a directory that a lookup found.
func (t *Table) NoteDir(dir ids.Object, name string, a *pb.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteLocked(a)
	t.at.put(place{dir, name}, names.Entry{Object: ids.Object(a.Object), Type: a.Mode})
}

// Lead notes that a cue which bounds the waiting was looked up in a directory. That
// one and those above it, as far as they are kept or known, are on the way to it.
func (t *Table) Lead(a *pb.Attr, terms cue.Terms, known func(ids.Object) (*pb.Attr, time.Duration, bool)) {
	if terms.Limit == 0 {
		return
	}
	for range maxUp {
		o, up := ids.Object(a.Object), ids.Object(a.Parent)
		t.lead(a, terms)
		above, _, ok := known(up)
		if !ok {
			above, ok = t.Attr(up)
		}
		if !ok || up == o {
			return
		}
		a = above
	}
}

// lead makes one directory part of a way.
func (t *Table) lead(a *pb.Attr, terms cue.Terms) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteLocked(a)
	t.led.put(ids.Object(a.Object), terms)
}

// Way is a directory on the way to a cue. A nil Way leads nowhere.
type Way struct {
	t     *Table
	attr  *pb.Attr
	terms cue.Terms
}

// To returns the way on which the directory of this name lies; nil: it leads to no cue.
func (t *Table) To(dir ids.Object, name string) *Way {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.at.get(place{dir, name})
	if !ok || e.Object == 0 {
		return nil
	}
	return t.wayLocked(e.Object)
}

// Over returns the way on which a directory lies; nil: it leads to no cue.
func (t *Table) Over(o ids.Object) *Way {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wayLocked(o)
}

// wayLocked is Over with mu held.
func (t *Table) wayLocked(o ids.Object) *Way {
	terms, led := t.led.get(o)
	a, kept := t.attrs.get(o)
	if !led || !kept {
		return nil
	}
	return &Way{t: t, attr: a, terms: terms}
}

// Of returns the way for an operation on terms of its own: nil where these bound it.
func (w *Way) Of(t cue.Terms) *Way {
	if t.Limit > 0 {
		return nil
	}
	return w
}

// Take runs ask, which asks a node, on the terms of the cue that the way leads to.
// Where no node answers it returns the directory as it was known last, and so it does
// at once for a while behind that.
func (w *Way) Take(ctx context.Context, ask func(context.Context) error) (last *pb.Attr, err error) {
	if w == nil {
		return nil, ask(ctx)
	}
	if w.t.isAway() {
		return w.attr, nil
	}
	within, done := timeouts.Within(ctx, w.terms)
	defer done()
	if err = ask(within); IsAway(err) && ctx.Err() == nil {
		w.t.noteAway()
		return w.attr, nil
	}
	return nil, err
}

func (t *Table) isAway() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock() < t.until
}

func (t *Table) noteAway() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = t.clock() + awayFor
}

// IsAway reports whether an error says that no node answered in time.
func IsAway(err error) bool { return fault.Is(err, fault.TimedOut) || fault.Is(err, fault.Unreachable) }
