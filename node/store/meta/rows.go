package meta

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"cartwheel.dev/geo-config/fault"
)

// arenaBytes is the size of what keys and values of rows are cut from.
const arenaBytes = 16 << 10

// spareRows bounds what a rows that is used again keeps.
const spareRows = 256

// rows are what a batch is going to write. What it changes several times, as a
// directory's record with each name in it, is there once; and write orders them
// by their keys: most of Pebble's work is to find a row's place, and that of the
// next is then often near.
type rows struct {
	list []row
	// last has the row noted last of those whose keys have a hash.
	last  map[uint64]int
	seed  maphash.Seed
	arena []byte
}

// row is a row to be written.
type row struct {
	key   []byte // full
	value []byte // not changed by anybody; nil: the row is removed
	// version says that value is that of a current row, to be kept as history.
	version bool
	at      int // its place in the list before it was ordered
	before  int // the one noted before it under the same hash, or -1
}

func newRows() *rows {
	return &rows{last: map[uint64]int{}, seed: maphash.MakeSeed(), arena: make([]byte, 0, arenaBytes)}
}

// cut returns n bytes of the arena, not nil where n is 0.
func (r *rows) cut(n int) []byte {
	if cap(r.arena)-len(r.arena) < n {
		r.arena = make([]byte, 0, max(n, arenaBytes)) // the rows hold the old one
	}
	at := len(r.arena)
	r.arena = r.arena[:at+n]
	return r.arena[at : at+n : at+n]
}

func (r *rows) copy(b []byte) []byte {
	c := r.cut(len(b))
	copy(c, b)
	return c
}

// noted returns the row that note has for a key, or nil, and the key's hash.
func (r *rows) noted(key []byte) (*row, uint64) {
	h := maphash.Bytes(r.seed, key)
	i, ok := r.last[h]
	for ; ok && i >= 0; i = r.list[i].before {
		if bytes.Equal(r.list[i].key, key) {
			return &r.list[i], h
		}
	}
	return nil, h
}

// note makes value, of which the rows keep the slice, the one of a key.
func (r *rows) note(key, value []byte) {
	old, h := r.noted(key)
	if old != nil {
		old.value = value
		return
	}
	before := -1
	if i, ok := r.last[h]; ok {
		before = i
	}
	r.last[h] = len(r.list)
	r.add(row{key: r.copy(key), value: value, before: before})
}

// add appends a row that noted does not find. It keeps the key's slice.
func (r *rows) add(w row) {
	w.at = len(r.list)
	r.list = append(r.list, w)
}

// write gives the rows to a batch of Pebble's, and returns them until the next
// change; noted finds none of them any more.
func (r *rows) write(b *pebble.Batch) ([]row, error) {
	written := r.list
	slices.SortFunc(written, func(x, y row) int {
		if c := bytes.Compare(x.key, y.key); c != 0 {
			return c
		}
		return x.at - y.at
	})
	r.list = r.list[:0]
	clear(r.last)
	for i := range written {
		if err := written[i].write(b); err != nil {
			return nil, fault.Wrap(fault.IO, "meta.write", "", err)
		}
	}
	return written, nil
}

func (w *row) write(b *pebble.Batch) error {
	switch {
	case w.value == nil:
		return b.Delete(w.key, nil)
	case !w.version:
		return b.Set(w.key, w.value, nil)
	}
	value := w.value[8:] // without its time, which the key has
	d := b.SetDeferred(len(w.key), 1+len(value))
	copy(d.Key, w.key)
	d.Value[0] = flagValue
	copy(d.Value[1:], value)
	return d.Finish()
}

// empty makes the rows ready to be used again, and reports whether they are
// worth keeping.
func (r *rows) empty() bool {
	if cap(r.list) > spareRows || cap(r.arena) > arenaBytes {
		return false
	}
	all := r.list[:cap(r.list)]
	clear(all) // they refer to values
	r.list, r.arena = all[:0], r.arena[:0]
	clear(r.last)
	return true
}
