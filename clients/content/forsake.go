package content

import "cartwheel.dev/geo-config/ids"

// A file that lost its last name goes with its last handle anywhere. Whether
// another client has it open, only its active knows: until that is asked, what is
// dirty here waits.

// Forsake is Close for the last handle of a file that may have no name any more.
// It does not start the commit of what is dirty: FlushObject does, or Discard
// makes an end of it. From now on it is no failure when the file is gone.
func (h *Handle) Forsake() {
	f := h.file
	f.mu.Lock()
	closed := h.closed
	if !closed {
		h.closed, f.forsaken = true, true
		f.handles--
	}
	f.mu.Unlock()
	if closed {
		return
	}
	h.source.ahead.stop()
	f.drop()
}

// Discard forgets what is dirty of an object that nobody can reach any more.
// What is on its way may arrive; nothing follows it.
func (e *Engine) Discard(object ids.Object) {
	f := e.table.find(object)
	if f == nil {
		return
	}
	f.mu.Lock()
	f.forsaken, f.discarded = true, true
	f.mu.Unlock()
	f.freeze() // its layers end in their order, as ever
	f.drop()
}
