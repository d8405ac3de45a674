package content

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Hold keeps what the engine knows of an object's version while an open asks for
// its attributes. A commit of this client may end meanwhile. Its handles may be
// closed by then, and the engine would forget what it made: the open would take
// attributes from before that. Release it.
type Hold struct{ file *file }

// Hold returns a Hold of an object. It is taken before the attributes are asked
// for, and released once the object is open, or is not opened.
func (e *Engine) Hold(object ids.Object) Hold {
	return Hold{e.table.hold(object)}
}

// Outdated reports whether attributes are older than what this client has made or
// seen since the Hold was taken.
func (h Hold) Outdated(attr *pb.Attr) bool {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	return attr.GetVersion() < h.file.newest
}

// Release gives the Hold up. It is called once.
func (h Hold) Release() {
	h.file.mu.Lock()
	h.file.holds--
	h.file.mu.Unlock()
	h.file.drop()
}
