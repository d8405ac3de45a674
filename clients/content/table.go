package content

import (
	"sync"

	"cartwheel.dev/geo-config/ids"
)

// maxUntold bounds the closed files whose failure the next handle is told of.
// That of any further file is in the log only.
const maxUntold = 4096

// table finds the files of an engine. Its mutex comes before those of the files.
type table struct {
	core *core

	mu     sync.Mutex              // guards below
	files  map[ids.Object]*file    // open, with uncommitted writes, or of untold
	untold map[ids.Object]struct{} // whose failure no handle was told of
}

func newTable(c *core) *table {
	return &table{core: c, files: map[ids.Object]*file{}, untold: map[ids.Object]struct{}{}}
}

// open returns the file of an object, made where there is none, with one handle
// more.
func (t *table) open(object ids.Object) *file {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.getLocked(object)
	f.mu.Lock()
	f.handles++
	f.forsaken = false
	f.mu.Unlock()
	return f
}

// hold returns the file of an object, made where there is none, with one open
// more that is under way.
func (t *table) hold(object ids.Object) *file {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.getLocked(object)
	f.mu.Lock()
	f.holds++
	f.mu.Unlock()
	return f
}

// getLocked returns the file of an object, made where there is none; t.mu is held.
func (t *table) getLocked(object ids.Object) *file {
	f := t.files[object]
	if f == nil {
		f = &file{core: t.core, table: t, object: object, wake: make(chan struct{}, 1)}
		t.files[object] = f
	}
	return f
}

// find returns the file of an object that is open or dirty, or nil.
func (t *table) find(object ids.Object) *file {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files[object]
}

// all returns the files at hand.
func (t *table) all() []*file {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*file, 0, len(t.files))
	for _, f := range t.files {
		out = append(out, f)
	}
	return out
}

// len is how many files are at hand.
func (t *table) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.files)
}

// drop forgets the file where no handle has it open, nothing is dirty, and no
// error waits for the next handle.
func (f *file) drop() {
	t := f.table
	t.mu.Lock()
	defer t.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handles > 0 || f.holds > 0 || len(f.layers) > 0 || f.running || t.files[f.object] != f {
		return
	}
	if f.failed > 0 && !f.told && len(t.untold) < maxUntold {
		t.untold[f.object] = struct{}{}
		return
	}
	delete(t.untold, f.object)
	delete(t.files, f.object)
}
