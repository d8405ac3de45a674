package content

import (
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// file is an object's content as this client sees it: the last version known,
// and what is written over it.
type file struct {
	core   *core
	table  *table // that it is in; nil: none
	object ids.Object

	mu      sync.Mutex
	handles int
	holds   int           // opens under way
	name    func() string // what a person knows the file by; nil: nothing
	// base is nil while the current version must be asked for. newest is the
	// highest serial seen, so that an older answer is not believed.
	base   *version
	newest uint64
	// doubts counts Invalidate calls. doubted says that one came while base was
	// on its way: base is right for the read that asked, and no later one.
	doubts  uint64
	doubted bool
	// layers are the uncommitted changes, oldest first; only the last may be
	// unfrozen.
	layers  []*layer
	running bool // a goroutine is committing layers
	// wake tells that goroutine of a newly frozen layer.
	wake  chan struct{}
	taken int // how many of layers it has taken

	// failed counts deferred errors; each handle remembers how many it told.
	failed uint64
	err    error
	told   bool // a handle was told of the last one
	// forsaken: the last handle went, and the file may be gone with it.
	// discarded: it is gone, and nothing of it is sent any more.
	forsaken, discarded bool
	dedup               dedup
	touches             touches
}

// source is the file as the object whose versions are read. What it recognises
// of the reads begins anew.
func (f *file) source() source {
	return source{core: f.core, object: f.object, touches: &f.touches}
}

// failLocked takes a deferred error down for the handles; f.mu is held.
func (f *file) failLocked(err error) {
	f.failed, f.err, f.told = f.failed+1, err, false
}

func (f *file) isDiscarded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.discarded
}

// expected reports whether a layer may fail so: nobody is to be told.
func (f *file) expected(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.discarded || f.forsaken && fault.Is(err, fault.Stale)
}

// Unsaved is a file with writes that are not committed.
type Unsaved struct {
	Object ids.Object
	Bytes  uint64
	Name   func() string // what a person knows it by; nil: nothing
	// Err says why writes of it were given up; nil: they are still sent.
	Err error
}

// unsaved says what of the file is not committed or was lost untold, if anything.
func (f *file) unsaved() (u Unsaved, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u = Unsaved{Object: f.object, Name: f.name}
	for _, l := range f.layers {
		for _, s := range l.segs {
			u.Bytes += s.n
		}
	}
	if !f.told {
		u.Err = f.err
	}
	return u, len(f.layers) > 0 || u.Err != nil
}
