package tree

import (
	"encoding/binary"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// A coordinator evaluates over facts: keys of several slices with their
// values, asked of each slice's active. What a fact is about:
const (
	askKey   = 1 // one key
	askEmpty = 2 // whether a directory has names
	askChain = 3 // the records from a directory up to the slice's edge
)

// ask is one question to a slice.
type ask struct {
	kind byte
	key  []byte // askKey: the key; else the directory's record key
}

func (a ask) slice() ids.Slice { return objectOf(a.key).Slice() }

// appendAsks encodes questions. Those of an intent that holds its locks name
// it: nobody may read what another intent holds.
func appendAsks(dst []byte, i Intent, asks []ask) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(i))
	dst = binary.AppendUvarint(dst, uint64(len(asks)))
	for _, a := range asks {
		dst = appendBytes(append(dst, a.kind), a.key)
	}
	return dst
}

// maxAsks bounds one question; a coordinator asks a handful.
const maxAsks = 64

// ReadFacts answers a coordinator's questions (pb.FactsRequest.asks) from the
// committed state of a slice, with pb.FactsResponse.facts. Busy means that
// another intent holds something of it, which may be decided elsewhere and not
// be told here yet: wait and read again.
func ReadFacts(v View, asks []byte) ([]byte, error) {
	const op fault.Op = "tree.ReadFacts"
	r := reader{data: asks}
	intent, count := Intent(r.uint64()), r.count(3)
	if count > maxAsks {
		return nil, fault.E(fault.TooLarge, op, "", "too many questions")
	}
	var out []byte
	for range count {
		a := ask{kind: r.byte(), key: r.bytes()}
		if r.bad || len(a.key) < 9 || (a.key[0] != keyInode && a.key[0] != keyEntry && a.key[0] != keyHold) {
			return nil, fault.E(fault.Invalid, op, "", "the questions are malformed")
		}
		err := readable(v, a, intent)
		if err == nil {
			out, err = appendFacts(out, v, a, intent)
		}
		switch {
		case fault.Is(err, fault.Busy):
			return nil, err
		case err != nil:
			return nil, fault.Wrap(fault.IO, op, "", err)
		}
	}
	if !r.done() {
		return nil, fault.E(fault.Invalid, op, "", "the questions are malformed")
	}
	return out, nil
}

// AskedNames lists the directories whose names a coordinator's questions are about, and
// those of which it asks whether they are empty; none where they are malformed.
func AskedNames(asks []byte) (named, emptied []ids.Object) {
	r := reader{data: asks}
	_, count := r.uint64(), r.count(3)
	for range min(count, maxAsks) {
		a := ask{kind: r.byte(), key: r.bytes()}
		if r.bad || len(a.key) < 9 {
			return nil, nil
		}
		switch o := objectOf(a.key); {
		case a.kind == askEmpty && !slices.Contains(emptied, o):
			emptied = append(emptied, o)
		case a.kind != askEmpty && a.key[0] == keyEntry && !slices.Contains(named, o):
			named = append(named, o)
		}
	}
	return named, emptied
}

// readable answers Busy where an intent other than mine holds what is asked for.
func readable(v View, a ask, mine Intent) error {
	s, err := ReadState(v)
	if err != nil || s.Locks == 0 {
		return err
	}
	o := objectOf(a.key)
	var held Intent
	switch {
	case a.kind == askEmpty:
		held, err = namesHolder(v, o, mine)
	case a.key[0] == keyEntry:
		held, err = holder(v, o, a.key[9:])
	default:
		held, err = holder(v, o, nil)
	}
	if err != nil || (held != 0 && held != mine) {
		return busy("tree.ReadFacts", o, err)
	}
	return nil
}

// appendFacts writes facts: kind, key, whether there is a value, the value.
func appendFacts(dst []byte, v View, a ask, mine Intent) ([]byte, error) {
	fact := func(kind byte, key, value []byte, ok bool) {
		dst = appendBytes(append(dst, kind), key)
		if !ok {
			dst = append(dst, 0)
			return
		}
		dst = appendBytes(append(dst, 1), value)
	}
	switch a.kind {
	case askKey:
		value, ok, err := v.Get(a.key)
		if err == nil {
			fact(askKey, a.key, value, ok)
		}
		return dst, err
	case askEmpty:
		t := txn{view: v, wide: true}
		empty, err := t.isEmpty(objectOf(a.key))
		fact(askEmpty, a.key, nil, empty)
		return dst, err
	case askChain:
		o, home := objectOf(a.key), objectOf(a.key).Slice()
		for range maxDepth {
			if err := readable(v, ask{askKey, objectKey(keyInode, o)}, mine); err != nil {
				return dst, err
			}
			value, ok, err := v.Get(objectKey(keyInode, o))
			if err != nil {
				return dst, err
			}
			fact(askKey, objectKey(keyInode, o), value, ok)
			if !ok {
				break
			}
			n, err := DecodeInode(o, value)
			if err != nil {
				return dst, err
			}
			if n.Parent == o || n.Parent == 0 || n.Parent.Slice() != home {
				break
			}
			o = n.Parent
		}
		return dst, nil
	}
	return dst, fault.E(fault.Invalid, "tree.ReadFacts", "", "an unknown question")
}

// unknown is met where the facts do not say; the coordinator asks.
type unknown ask

func (unknown) Error() string { return "not known yet" }

// facts is what a coordinator has learned: a View over several slices that
// knows when it does not know.
type facts struct {
	values map[string][]byte // nil value: known to be absent
	empty  map[string]bool
}

func newFacts() *facts { return &facts{values: map[string][]byte{}, empty: map[string]bool{}} }

// learn takes in an answer of ReadFacts.
func (f *facts) learn(data []byte) error {
	r := reader{data: data}
	for len(r.data) > 0 && !r.bad {
		kind, key := r.byte(), r.bytes()
		ok := r.byte() == 1
		var value []byte
		if ok {
			value = append([]byte{}, r.bytes()...)
		}
		if kind == askEmpty {
			f.empty[string(key)] = ok
		} else {
			f.values[string(key)] = value
		}
	}
	if r.bad {
		return fault.E(fault.Corrupt, "tree.Coordinator", "", "facts are malformed")
	}
	return nil
}

// know reports whether a question was answered.
func (f *facts) know(a ask) (known bool) {
	switch a.kind {
	case askKey:
		_, known = f.values[string(a.key)]
	case askEmpty:
		_, known = f.empty[string(a.key)]
	}
	return known
}

// Get implements View.
func (f *facts) Get(key []byte) ([]byte, bool, error) {
	value, known := f.values[string(key)]
	if !known {
		return nil, false, unknown{askKey, append([]byte(nil), key...)}
	}
	return value, value != nil, nil
}

// Scan implements View for the one scan that an evaluation over several slices
// makes: whether a directory has any name.
func (f *facts) Scan(from, _ []byte, fn func(key, value []byte) bool) error {
	key := objectKey(keyInode, objectOf(from))
	empty, known := f.empty[string(key)]
	if !known {
		return unknown{askEmpty, key}
	}
	if !empty {
		fn(from, nil)
	}
	return nil
}
