package tree

import (
	"bytes"
	"slices"
	"strings"

	"cartwheel.dev/geo-config/ids"
)

// Overlay lays the mutations of proposed operations over the committed state:
// what an active evaluates the next operation over. Operations are added in
// the order of their serials, leave in that order once the base shows them
// (Applied), and go from the end where a new epoch cuts them off (Cut).
type Overlay struct {
	base  View
	items map[string]*item
	// near groups items by the first nine bytes of their keys, a kind and an
	// object, which is what scans ask for.
	near map[[9]byte][]*item
	ops  []overlaid // ascending serials
}

type overlaid struct {
	serial ids.Serial
	items  []*item
}

type item struct {
	key      string
	at       int // in its group
	versions []version
}

type version struct {
	serial ids.Serial
	value  []byte // nil: deleted
}

// NewOverlay returns an overlay with nothing in it.
func NewOverlay(base View) *Overlay {
	return &Overlay{base: base, items: map[string]*item{}, near: map[[9]byte][]*item{}}
}

// Len is the number of operations that the overlay holds.
func (o *Overlay) Len() int { return len(o.ops) }

// Add lays one operation's mutations on top. The overlay keeps their memory.
func (o *Overlay) Add(serial ids.Serial, mutations []Mutation) {
	op := overlaid{serial: serial, items: make([]*item, 0, len(mutations))}
	for i := range mutations {
		m := &mutations[i]
		it := o.items[string(m.Key)]
		if it == nil {
			it = &item{key: string(m.Key), versions: make([]version, 0, 2)}
			o.items[it.key] = it
			g := group(it.key)
			it.at = len(o.near[g])
			o.near[g] = append(o.near[g], it)
		}
		if n := len(it.versions); n > 0 && it.versions[n-1].serial == serial {
			it.versions[n-1].value = m.Value
			continue
		}
		it.versions = append(it.versions, version{serial, m.Value})
		op.items = append(op.items, it)
	}
	o.ops = append(o.ops, op)
}

func group(key string) (g [9]byte) {
	copy(g[:], key)
	return g
}

// Applied forgets the operations up to a serial: the base has them.
func (o *Overlay) Applied(upTo ids.Serial) {
	n := 0
	for ; n < len(o.ops) && o.ops[n].serial <= upTo; n++ {
		for _, it := range o.ops[n].items {
			it.versions = it.versions[1:]
			o.release(it)
		}
		o.ops[n].items = nil
	}
	if o.ops = o.ops[n:]; len(o.ops) == 0 {
		o.ops = nil
	}
}

// Cut forgets the operations from a serial on: they never happened.
func (o *Overlay) Cut(from ids.Serial) {
	for n := len(o.ops) - 1; n >= 0 && o.ops[n].serial >= from; n-- {
		for _, it := range o.ops[n].items {
			it.versions = it.versions[:len(it.versions)-1]
			o.release(it)
		}
		o.ops = o.ops[:n]
	}
}

func (o *Overlay) release(it *item) {
	if len(it.versions) > 0 {
		return
	}
	delete(o.items, it.key)
	g := group(it.key)
	list := o.near[g]
	last := list[len(list)-1]
	list[it.at], last.at = last, it.at
	list[len(list)-1] = nil
	if list = list[:len(list)-1]; len(list) == 0 {
		delete(o.near, g)
	} else {
		o.near[g] = list
	}
}

// Get implements View.
func (o *Overlay) Get(key []byte) ([]byte, bool, error) {
	if it := o.items[string(key)]; it != nil {
		value := it.versions[len(it.versions)-1].value
		return value, value != nil, nil
	}
	return o.base.Get(key)
}

// Scan implements View.
func (o *Overlay) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	list := o.between(from, to)
	if len(list) == 0 {
		return o.base.Scan(from, to, fn)
	}
	going := true
	emit := func(it *item) {
		if value := it.versions[len(it.versions)-1].value; value != nil && going {
			going = fn([]byte(it.key), value)
		}
	}
	err := o.base.Scan(from, to, func(key, value []byte) bool {
		for len(list) > 0 && list[0].key < string(key) {
			emit(list[0])
			list = list[1:]
		}
		if len(list) > 0 && list[0].key == string(key) {
			emit(list[0])
			list = list[1:]
		} else if going {
			going = fn(key, value)
		}
		return going
	})
	for ; err == nil && going && len(list) > 0; list = list[1:] {
		emit(list[0])
	}
	return err
}

// between returns the items in [from, to) in order.
func (o *Overlay) between(from, to []byte) []*item {
	var out []*item
	take := func(it *item) {
		if it.key >= string(from) && (to == nil || it.key < string(to)) {
			out = append(out, it)
		}
	}
	if len(from) >= 9 && (bytes.HasPrefix(to, from[:9]) || bytes.Equal(to, endOf(from[:9]))) {
		for _, it := range o.near[group(string(from[:9]))] {
			take(it)
		}
	} else {
		for _, it := range o.items {
			take(it)
		}
	}
	slices.SortFunc(out, func(a, b *item) int { return strings.Compare(a.key, b.key) })
	return out
}
