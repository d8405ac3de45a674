package operate

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// committed is the state of one slice in the metadata: versioned keys in the
// versioned area, the others in the plain one.
type committed struct {
	db    *meta.DB
	slice ids.Slice
	view  meta.View
}

// Committed returns the committed state of a slice as a tree.View.
func Committed(db *meta.DB, s ids.Slice) tree.View {
	return committed{db: db, slice: s, view: db.Slice(s)}
}

func (c committed) Get(key []byte) ([]byte, bool, error) {
	if tree.Versioned(key) {
		return c.view.Get(key)
	}
	return c.db.Plain(c.slice, key)
}

// Scan needs from and to within one kind of key, as package tree asks.
func (c committed) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	if tree.Versioned(from) {
		return c.view.Scan(from, to, fn)
	}
	return c.db.ScanPlain(c.slice, from, to, fn)
}

// RetainedOf are the readings that collection leaves as they are, for the metadata.
func RetainedOf(horizon hlc.Time, keeps []hlc.Time) meta.Retained {
	r := meta.Retained{Horizon: uint64(horizon)}
	for _, at := range keeps {
		r.Keeps = append(r.Keeps, uint64(at))
	}
	return r
}
