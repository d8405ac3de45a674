package cartwheel

import (
	"sync"
	"sync/atomic"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/listing"
	"cartwheel.dev/clients/cartwheel/owed"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// handle is an open file or directory.
type handle struct {
	object  ids.Object
	node    mount.Inode
	content *content.Handle // of a file
	writer  *calls.Writer   // of a file
	flags   mount.OpenFlags
	terms   cue.Terms        // of each operation, by the path that it was opened by
	lazy    bool             // its close waits for no node where nobody else can see the file
	seals   bool             // it writes a write-once file
	listing *listing.Listing // of a directory
	// asked: this handle asked for the attributes once, to learn whether a write
	// has to take set-id bits or capabilities away.
	asked atomic.Bool
}

// handles is the table of what is open.
type handles struct {
	owed   *owed.Table // of files that are written
	keeper *owed.Keeper

	mu   sync.RWMutex // guards below
	byID map[mount.Handle]*handle
	last mount.Handle
}

func (t *handles) init() { t.byID = map[mount.Handle]*handle{} }

func (t *handles) add(h *handle) mount.Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.byID[t.last] = h
	return t.last
}

func (t *handles) get(id mount.Handle) (*handle, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if h := t.byID[id]; h != nil {
		return h, nil
	}
	return nil, fault.E(fault.BadHandle, "cartwheel", "", "")
}

func (t *handles) file(id mount.Handle) (*handle, error) {
	h, err := t.get(id)
	if err == nil && h.content == nil {
		err = fault.E(fault.BadHandle, "cartwheel", "", "")
	}
	return h, err
}

func (t *handles) remove(id mount.Handle) *handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.byID[id]
	delete(t.byID, id)
	return h
}

// isWritten reports whether any handle may write to a file.
func (t *handles) isWritten(o ids.Object) bool { return t.writer(o) != nil }

// writer returns a handle that may write to a file; nil: there is none.
func (t *handles) writer(o ids.Object) *handle {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, h := range t.byID {
		if h.object == o && h.flags.Writes() {
			return h
		}
	}
	return nil
}

// terms are those of operations on a handle.
func (t *handles) terms(id mount.Handle) cue.Terms {
	h, err := t.get(id)
	if err != nil {
		return cue.Terms{} // the operation says so
	}
	return h.terms
}
