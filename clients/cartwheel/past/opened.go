package past

import (
	"sync"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/protocol/pb"
)

// handle is an open file or directory of the past.
type handle struct {
	node    *node
	attr    *pb.Attr // of a file, with its content but what is small
	listing *listing // of a directory
}

// firstHandle is where the numbers of handles begin. Those of the present are small.
const firstHandle mount.Handle = 1 << 62

// opened is the table of what is open. Its zero value is empty.
type opened struct {
	mu   sync.Mutex // guards below
	byID map[mount.Handle]*handle
	last mount.Handle
}

func (t *opened) add(h *handle) mount.Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID, t.last = map[mount.Handle]*handle{}, firstHandle
	}
	t.last++
	t.byID[t.last] = h
	return t.last
}

// get returns what is open, or nil.
func (t *opened) get(id mount.Handle) *handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *opened) remove(id mount.Handle) *handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.byID[id]
	delete(t.byID, id)
	return h
}

// listing is an open directory. Its names never change, so that a cookie, which counts
// them, stays good. One page is in memory.
type listing struct {
	mu    sync.Mutex // guards below; held while a page is read
	page  []*pb.Entry
	base  uint64 // how many names are before the page
	begun bool
	more  bool // there are names behind the page
}
