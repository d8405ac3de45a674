// Package pending keeps the files that a client has made in directories that
// are its alone and that their active has not heard of: each with what its
// create will say, until one goroutine claims it, sends it and finishes it. It
// also keeps the object IDs that actives gave for such files. It sends nothing
// and decides nothing about leases. A Table is safe for use by many goroutines;
// its mutex is held over no call but the check that Add is given.
package pending

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// MaxFiles bounds the files of a Table where New is not told otherwise: where there are more, files are made at
// their active at once.
const MaxFiles = 1024

// File is one such file. Its fields do not change once it is in a Table.
type File struct {
	Object, Dir ids.Object
	Name        string
	// Create is what is sent, without content; Principal is who makes it.
	Create    *pb.Create
	Principal *pb.Principal
	Level     uint32
	Since     time.Duration // boot time
	Journal   uint64        // its number in the write journal, 0: none

	claimed bool // the Table's mutex guards it
	done    chan struct{}
	err     error // set before done is closed
}

// Wait returns what came of the file: nil once its active has it.
func (f *File) Wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return fault.Wrap(fault.Interrupted, "pending.Wait", f.Name, context.Cause(ctx))
	}
}

type place struct {
	dir  ids.Object
	name string
}

// numbers are object IDs in a row.
type numbers struct{ next, end ids.Object }

// Table keeps them.
type Table struct {
	count atomic.Int64 // of byObject, so that asking costs nothing where it is empty
	most  int          // files

	mu       sync.Mutex // guards the rest
	byObject map[ids.Object]*File
	byPlace  map[place]*File
	ids      map[ids.Slice][]numbers
}

// New returns an empty Table for so many files; 0: MaxFiles.
func New(most int) *Table {
	if most == 0 {
		most = MaxFiles
	}
	return &Table{most: most, byObject: map[ids.Object]*File{}, byPlace: map[place]*File{}, ids: map[ids.Slice][]numbers{}}
}

// Len is how many files there are.
func (t *Table) Len() int { return int(t.count.Load()) }

// Add takes a file in if there is room and check, under the mutex, agrees: so
// that whoever makes check fail from now on finds in the Table all that it
// agreed to before.
func (t *Table) Add(f *File, check func() bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := place{f.Dir, f.Name}
	if len(t.byObject) >= t.most || t.byPlace[p] != nil || !check() {
		return false
	}
	f.done = make(chan struct{})
	t.byObject[f.Object], t.byPlace[p] = f, f
	t.count.Add(1)
	return true
}

// Of returns an object's file, or nil.
func (t *Table) Of(o ids.Object) *File {
	if t.count.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byObject[o]
}

// At returns the file of a name, or nil.
func (t *Table) At(dir ids.Object, name string) *File {
	if t.count.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byPlace[place{dir, name}]
}

// Which returns the files that a condition holds for.
func (t *Table) Which(cond func(*File) bool) []*File {
	if t.count.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*File
	for _, f := range t.byObject {
		if cond(f) {
			out = append(out, f)
		}
	}
	return out
}

// Dirs returns the directories that files are in; nil where there is none.
func (t *Table) Dirs() map[ids.Object]bool {
	if t.count.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[ids.Object]bool{}
	for p := range t.byPlace {
		out[p.dir] = true
	}
	return out
}

// Claim makes the caller the one who sends the file; false where somebody
// else is, or was.
func (t *Table) Claim(f *File) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.claimed || t.byObject[f.Object] != f {
		return false
	}
	f.claimed = true
	return true
}

// Release gives a claim back: the active did not do it, and it is tried again.
func (t *Table) Release(f *File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.claimed = false
}

// Finish takes a claimed file out and tells those who wait.
func (t *Table) Finish(f *File, err error) {
	t.mu.Lock()
	delete(t.byObject, f.Object)
	delete(t.byPlace, place{f.Dir, f.Name})
	t.count.Add(-1)
	t.mu.Unlock()
	f.err = err
	close(f.done)
}

// Give adds object IDs that a slice's active gave.
func (t *Table) Give(first ids.Object, count uint32) {
	if count == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids[first.Slice()] = append(t.ids[first.Slice()], numbers{first, first + ids.Object(count)})
}

// ID takes an object ID of a slice.
func (t *Table) ID(s ids.Slice) (o ids.Object, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.ids[s]
	if len(list) == 0 {
		return 0, false
	}
	o = list[0].next
	if list[0].next++; list[0].next == list[0].end {
		t.ids[s] = list[1:]
	}
	return o, true
}

// Left is how many IDs of a slice there are.
func (t *Table) Left(s ids.Slice) (left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.ids[s] {
		left += int(n.end - n.next)
	}
	return left
}
