package tree

import (
	"bytes"

	"cartwheel.dev/geo-config/ids"
)

// The members at one side do operations in turn, where they lose sight of each other.
// So several side logs of a slice may have changes of one file. The serials of what
// members do count on from all that they have seen. What was changed last shows: in a
// log over what it was made of, and everywhere the same of what two did at once.

// Others finds the last change of a key by the other side logs at this node, if it is
// newer than one of an operation with this serial by the log itself.
type Others func(key []byte, than ids.Serial) (SideChange, bool)

// Change is what a side did to a key; false: nothing.
func (s *Side) Change(key []byte) (SideChange, bool) {
	at, ok := s.over.at[string(key)]
	if !ok {
		return SideChange{}, false
	}
	return s.changeAt(at), true
}

func (s *Side) changeAt(at int) SideChange {
	m := &s.over.list[at]
	is := s.begun[string(m.Key)]
	return SideChange{Key: m.Key, Value: m.Value, Before: is.before, Serial: is.serial, Merged: is.merged}
}

// Over is a side's changes over another base than its own, without what another side
// log changed later. It is good until a side changes.
func Over(s *Side, base View) View {
	s.over.group()
	l := *s.over
	l.base = base
	if s.others != nil {
		l.past = func(_ *layer, m *Mutation) bool { return s.isOld(m.Key) }
	}
	return &l
}

// isOld reports whether another side log changed a key after this one. Content and
// attributes go with their record: an operation that changes one keeps all of them.
func (s *Side) isOld(key []byte) bool {
	if s.others == nil {
		return false
	}
	if key[0] == keyContent || key[0] == keyXattr {
		record := objectKey(keyInode, objectOf(key))
		if _, here := s.begun[string(record)]; here {
			key = record
		}
	}
	_, is := s.others(key, s.begun[string(key)].serial)
	return is
}

// withContent adds to mutations the content and the attributes of the objects whose
// records they change, where another side log has those and this one has not: it may
// be merged and gone before this one is.
func (s *Side) withContent(mutations []Mutation) ([]Mutation, error) {
	if s.others == nil {
		return mutations, nil
	}
	written := map[string]bool{}
	for i := range mutations {
		written[string(mutations[i].Key)] = true
	}
	out := mutations
	keep := func(key, value []byte) bool {
		if _, is := s.others(key, s.begun[string(key)].serial); is && !written[string(key)] {
			out = append(out, Mutation{Key: bytes.Clone(key), Value: bytes.Clone(value)})
		}
		return true
	}
	v := Over(s, s.base)
	for i := range mutations {
		m := &mutations[i]
		if _, theirs := s.others(m.Key, s.begun[string(m.Key)].serial); !theirs || m.Key[0] != keyInode || m.Value == nil {
			continue
		}
		o := objectOf(m.Key)
		for _, prefix := range [][]byte{objectKey(keyContent, o), objectKey(keyXattr, o)} {
			if err := v.Scan(prefix, endOf(prefix), keep); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
