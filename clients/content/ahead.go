package content

import (
	"context"
	"sync"

	"cartwheel.dev/node/chunk"
)

const (
	// firstWindow is the read-ahead when a stream is recognised; it doubles
	// with each block read, up to Options.ReadAhead.
	firstWindow = 1 << 20
	// slack is how far from where a stream stands a read may begin and still
	// belong to it: kernels send reads of a stream side by side.
	slack = 1 << 20
	// enough is how much must be read in order to be a stream.
	enough = 128 << 10
)

// ahead recognises a handle's sequential reads and says what to fetch before
// them.
type ahead struct {
	mu     sync.Mutex    // guards below
	root   chunk.Address // of the version that the rest is about
	next   uint64        // where the stream stands
	run    uint64        // bytes read in order
	window uint64
	issued uint64 // up to where was fetched ahead
	ctx    context.Context
	cancel context.CancelFunc
}

// noteLocked takes down a read of a version and reports whether it belongs to a
// stream, and whether that was recognised just now. Where most, the bound of the
// window, is negative, nothing is a stream. a.mu is held.
func (a *ahead) noteLocked(root chunk.Address, off, n uint64, most int64) (stream, first bool) {
	if a.root != root {
		a.root, a.run, a.window, a.issued = root, 0, 0, 0
	}
	if !a.near(off) {
		a.lose(off, n)
		return false, false
	}
	a.next, a.run = max(a.next, off+n), a.run+n
	if a.run < enough || most < 0 {
		return false, false
	}
	first = a.window == 0
	a.window = min(max(2*a.window, firstWindow), uint64(most))
	return true, first
}

// expect begins a stream with the first byte of a version, before anything of it
// was read: its chunks are fetched whole from there on.
func (a *ahead) expect(root chunk.Address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.root, a.next, a.run, a.window, a.issued = root, 0, enough, firstWindow, 0
}

// near reports whether a read at off may belong to the stream.
func (a *ahead) near(off uint64) bool {
	if a.run == 0 {
		return off == a.next
	}
	return off <= a.next+slack && off+slack >= a.next
}

// lose begins anew with a read that does not belong to the stream.
func (a *ahead) lose(off, n uint64) {
	a.next, a.run, a.window, a.issued = off+n, n, 0, 0
	if off != 0 {
		a.run = 1 // the next read must continue it
	}
}

// stop ends fetching ahead: the handle is closed.
func (a *ahead) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cancel != nil {
		a.cancel()
	}
}

// random takes a read of a version down, as note does, if it belongs to no stream
// and will begin none; otherwise it reports false and leaves all to note.
func (a *ahead) random(root chunk.Address, off, n uint64) bool {
	if !a.mu.TryLock() {
		return false
	}
	defer a.mu.Unlock()
	if a.root != root || off == 0 || a.near(off) {
		return false
	}
	a.lose(off, n)
	return true
}

// mostTouches bounds the windows of which touches knows; then it begins anew.
const mostTouches = 4096

// touches counts a file's random reads of each window of its range map.
type touches struct {
	mu   sync.Mutex
	seen map[uint64]struct{} // read once or more
}

// again counts a read of a window and reports whether it is not the first, so
// that the window is worth loading.
func (t *touches) again(window uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil || len(t.seen) > mostTouches {
		t.seen = map[uint64]struct{}{}
	}
	if _, ok := t.seen[window]; ok {
		return true
	}
	t.seen[window] = struct{}{}
	return false
}
