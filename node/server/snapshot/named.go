package snapshot

import (
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// named are the chunks that a page's rows name: those that current files use, and those of
// older versions alone.
type named struct{ current, past []chunk.Address }

// note adds the chunk that a row names, if it names one.
func (n *named) note(r *meta.Row) {
	if !r.Plain() {
		return
	}
	switch a, current, is := tree.RefAddress(r.Key, r.Value); {
	case is && current:
		n.current = append(n.current, a)
	case is:
		n.past = append(n.past, a)
	}
}
