package tree

import (
	"bytes"
	"slices"
)

// layer lays what the operations of one batch changed over the state behind
// which it is evaluated. Each key is in it once, with its last value.
type layer struct {
	base View
	list []Mutation
	at   map[string]int // in list
	size int            // of list, as DataSize counts it
	// near groups the first grouped mutations by the first nine bytes of their
	// keys, which is what scans ask for; the others have not been scanned for yet.
	near    map[[9]byte][]int
	grouped int
	// past tells of a mutation that the base has left behind; nil: of none.
	past func(l *layer, m *Mutation) bool
}

func newLayer(base View, operations int) *layer {
	return &layer{base: base, list: make([]Mutation, 0, 3*operations+8), at: make(map[string]int, 3*operations+8)}
}

// add lays an operation's mutations on top. It keeps their memory.
func (l *layer) add(mutations []Mutation) {
	for i := range mutations {
		m := &mutations[i]
		if at, ok := l.at[string(m.Key)]; ok {
			l.size += len(m.Value) - len(l.list[at].Value)
			l.list[at].Value = m.Value
			continue
		}
		l.at[string(m.Key)] = len(l.list)
		l.list = append(l.list, *m)
		l.size += mutationSize(m)
	}
}

// Get implements View.
func (l *layer) Get(key []byte) ([]byte, bool, error) {
	if at, ok := l.at[string(key)]; ok && !l.isPast(at) {
		value := l.list[at].Value
		return value, value != nil, nil
	}
	return l.base.Get(key)
}

// Scan implements View.
func (l *layer) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	list := l.between(from, to)
	if len(list) == 0 {
		return l.base.Scan(from, to, fn)
	}
	going := true
	emit := func() {
		if m := &l.list[list[0]]; m.Value != nil && going {
			going = fn(m.Key, m.Value)
		}
		list = list[1:]
	}
	err := l.base.Scan(from, to, func(key, value []byte) bool {
		for len(list) > 0 && bytes.Compare(l.list[list[0]].Key, key) < 0 {
			emit()
		}
		if len(list) > 0 && bytes.Equal(l.list[list[0]].Key, key) {
			emit()
		} else if going {
			going = fn(key, value)
		}
		return going
	})
	for err == nil && going && len(list) > 0 {
		emit()
	}
	return err
}

// between returns the mutations in [from, to), in order of their keys. Operations
// scan within one object, or for all that one client holds.
func (l *layer) between(from, to []byte) []int {
	l.group()
	var out []int
	take := func(at int) {
		if key := l.list[at].Key; bytes.Compare(key, from) >= 0 && (to == nil || bytes.Compare(key, to) < 0) && !l.isPast(at) {
			out = append(out, at)
		}
	}
	if len(from) >= 9 && (bytes.HasPrefix(to, from[:9]) || bytes.Equal(to, endOf(from[:9]))) {
		for _, at := range l.near[[9]byte(from[:9])] {
			take(at)
		}
	} else {
		for at := range l.list {
			take(at)
		}
	}
	slices.SortFunc(out, func(a, b int) int { return bytes.Compare(l.list[a].Key, l.list[b].Key) })
	return out
}

// remove takes a key out of the layer.
func (l *layer) remove(key []byte) {
	at, ok := l.at[string(key)]
	if !ok {
		return
	}
	l.group()
	l.size -= mutationSize(&l.list[at])
	last := len(l.list) - 1
	l.regroup(at, -1)
	if at != last {
		l.regroup(last, at)
		l.list[at] = l.list[last]
		l.at[string(l.list[at].Key)] = at
	}
	delete(l.at, string(key))
	l.list[last] = Mutation{}
	l.list = l.list[:last]
	l.grouped = last
}

// regroup notes that a mutation goes from one place of the list to another; -1: to none.
func (l *layer) regroup(from, to int) {
	key := l.list[from].Key
	if len(key) < 9 {
		return
	}
	g := [9]byte(key[:9])
	i := slices.Index(l.near[g], from)
	if to >= 0 {
		l.near[g][i] = to
	} else if l.near[g] = slices.Delete(l.near[g], i, i+1); len(l.near[g]) == 0 {
		delete(l.near, g)
	}
}

func (l *layer) isPast(at int) bool { return l.past != nil && l.past(l, &l.list[at]) }

func (l *layer) group() {
	if l.near == nil {
		l.near = map[[9]byte][]int{}
	}
	for ; l.grouped < len(l.list); l.grouped++ {
		if key := l.list[l.grouped].Key; len(key) >= 9 {
			g := [9]byte(key[:9])
			l.near[g] = append(l.near[g], l.grouped)
		}
	}
}
