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
	"google.golang.org/protobuf/proto"
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
	// Behind returns when the active knows what this client did before it made the
	// file; nil: nothing.
	Behind func(context.Context) error
	// Lazy: nobody waits for it when it is closed (.SyncLevel=0), so that what is
	// written to it goes along whenever it is published.
	Lazy bool

	// The stream's mutex guards these: InStream, once its create is in the stream;
	// Needed, if something in the stream waits for it, so that it must not go there.
	InStream, Needed bool

	// The Table's mutex guards these.
	claimed bool
	ordered bool          // settled is closed
	set     *pb.SetAttr   // what was changed of it since it was made; nil: nothing
	setNs   int64         // when, in Unix nanoseconds
	settled chan struct{} // closed by Order
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
	f.done, f.settled = make(chan struct{}), make(chan struct{})
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

// Change changes attributes of a file that nobody has claimed yet, if check, under
// the mutex, agrees: its active will hear of them with the file. Of the changes, the
// last one of each attribute counts.
func (t *Table) Change(f *File, set *pb.SetAttr, at int64, check func() bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.claimed || t.byObject[f.Object] != f || !check() {
		return false
	}
	if f.set == nil {
		f.set = &pb.SetAttr{Object: uint64(f.Object)}
	}
	proto.Merge(f.set, set)
	// One that is set to a time is not set to now any more, and the other way round.
	if set.AtimeNow || set.AtimeNs != nil {
		f.set.AtimeNow, f.set.AtimeNs = set.AtimeNow, set.AtimeNs
	}
	if set.MtimeNow || set.MtimeNs != nil {
		f.set.MtimeNow, f.set.MtimeNs = set.MtimeNow, set.MtimeNs
	}
	f.set.ByHandle, f.setNs = false, at
	return true
}

// Changed is what Change noted of a claimed file, and when; nil: nothing.
func (t *Table) Changed(f *File) (set *pb.SetAttr, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return f.set, f.setNs
}

// Release gives a claim back: the active did not do it, and it is tried again.
func (t *Table) Release(f *File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.claimed = false
}

// Order notes that the place of a file among what the client does by itself is
// settled: whatever is done from now on comes behind it.
func (t *Table) Order(f *File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !f.ordered {
		f.ordered = true
		close(f.settled)
	}
}

// Ordered returns when Order or Finish was called, or ctx ends.
func (f *File) Ordered(ctx context.Context) {
	select {
	case <-f.settled:
	case <-f.done:
	case <-ctx.Done():
	}
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
