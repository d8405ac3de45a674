package operate

import (
	"sort"

	"cartwheel.dev/geo-config/ids"
)

// overlay holds, for one slice, what proposed operations changed and Pebble
// does not show yet, over a base view. It belongs to the loop's goroutine.
type overlay struct {
	values map[string]overlaid
	sorted []string // keys in order; stale while dirty
	dirty  bool
}

// overlaid is the value that the operation with this serial gave a key; nil
// means deleted.
type overlaid struct {
	value  []byte
	serial ids.Serial
}

func newOverlay() *overlay { return &overlay{values: map[string]overlaid{}} }

// set notes what an operation did to a key. It keeps value.
func (o *overlay) set(key, value []byte, serial ids.Serial) {
	old, had := o.values[string(key)]
	if had && old.serial > serial {
		return
	}
	if !had {
		o.dirty = true
	}
	o.values[string(key)] = overlaid{value: value, serial: serial}
}

// applied forgets a key's value once the base shows it, unless a later
// operation changed it again.
func (o *overlay) applied(key []byte, serial ids.Serial) {
	if v, ok := o.values[string(key)]; ok && v.serial <= serial {
		delete(o.values, string(key))
		o.dirty = true
	}
}

// clear forgets everything: the operations proposed so far are void.
func (o *overlay) clear() {
	clear(o.values)
	o.sorted, o.dirty = nil, false
}

// get returns the value that proposals gave the key, and whether any did.
func (o *overlay) get(key []byte) (value []byte, ok bool) {
	v, ok := o.values[string(key)]
	return v.value, ok
}

// serial returns the serial of the proposal that changed a key last, 0 where none did.
func (o *overlay) serial(key []byte) ids.Serial { return o.values[string(key)].serial }

// within returns the overlaid keys in [from, to), in order. A nil to has no end.
func (o *overlay) within(from, to []byte) []string {
	if len(o.values) == 0 {
		return nil
	}
	if o.dirty {
		o.sorted = o.sorted[:0]
		for k := range o.values {
			o.sorted = append(o.sorted, k)
		}
		sort.Strings(o.sorted)
		o.dirty = false
	}
	first := sort.SearchStrings(o.sorted, string(from))
	last := len(o.sorted)
	if to != nil {
		last = sort.SearchStrings(o.sorted, string(to))
	}
	if first >= last {
		return nil
	}
	return o.sorted[first:last]
}

// view joins an overlay with the base below it; it is a tree.View.
type view struct {
	over *overlay
	base base
}

// base is what view reads below the overlay: the committed state of one slice.
type base interface {
	Get(key []byte) (value []byte, ok bool, err error)
	Scan(from, to []byte, fn func(key, value []byte) bool) error
}

// Get returns the newest value, proposals included.
func (v view) Get(key []byte) ([]byte, bool, error) {
	if value, ok := v.over.get(key); ok {
		return value, value != nil, nil
	}
	return v.base.Get(key)
}

// Scan calls fn for each key in [from, to) in order until fn returns false.
func (v view) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	over := v.over.within(from, to)
	if len(over) == 0 {
		return v.base.Scan(from, to, fn)
	}
	stopped := false
	emit := func(key string) bool {
		value := v.over.values[key].value
		if value != nil && !fn([]byte(key), value) {
			stopped = true
		}
		return !stopped
	}
	err := v.base.Scan(from, to, func(key, value []byte) bool {
		for len(over) > 0 && over[0] < string(key) {
			if !emit(over[0]) {
				return false
			}
			over = over[1:]
		}
		if len(over) > 0 && over[0] == string(key) {
			first := over[0]
			over = over[1:]
			return emit(first)
		}
		if !fn(key, value) {
			stopped = true
		}
		return !stopped
	})
	for err == nil && !stopped && len(over) > 0 && emit(over[0]) {
		over = over[1:]
	}
	return err
}
