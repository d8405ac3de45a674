package snapshot

import (
	"slices"
	"sync"

	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/meta"
)

// away has the chunks that the source of a copy notes as not on its disk: a node that
// is away has them, in a slice with a time to coherence. The copy is as whole as its
// source without them. It gets the notes too, and fetches the chunks when it can. It is
// safe for concurrent use.
type away struct {
	mu     sync.Mutex // guards chunks
	chunks map[chunk.Address]bool
}

// note takes the chunks of a row that is such a note, and reports whether it is one.
func (a *away) note(r *meta.Row) bool {
	addresses, ok := replog.IsUnheld(r.Key, r.Value)
	if !ok {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.chunks == nil {
		a.chunks = map[chunk.Address]bool{}
	}
	for ; len(addresses) >= chunk.AddressSize; addresses = addresses[chunk.AddressSize:] {
		a.chunks[chunk.Address(addresses[:chunk.AddressSize])] = true
	}
	return true
}

// without leaves the noted ones out of a list, which it changes.
func (a *away) without(list []chunk.Address) []chunk.Address {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(list, func(c chunk.Address) bool { return a.chunks[c] })
}
