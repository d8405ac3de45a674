package tree

import "cartwheel.dev/geo-config/ids"

// A side log is kept until all of it is merged and shown, and its copies at other members
// hear of that last. Until then it lies over a state in which the active may have gone
// on: what it merged must not hide what came behind.

// Shown is a side's changes over a base as readers see them: without those of objects
// that the base has by way of the active, and without what another side log changed
// later. It is good until a side changes.
func Shown(s *Side, base View) View {
	s.over.group()
	l := *s.over
	l.base, l.past = base, func(l *layer, m *Mutation) bool { return s.isOld(m.Key) || s.isPast(l, m) }
	return &l
}

// isPast reports whether a change of a side log is merged in the base.
func (s *Side) isPast(l *layer, m *Mutation) bool {
	switch m.Key[0] {
	case keyInode, keyContent, keyXattr:
		return s.hasMerged(l, objectOf(m.Key))
	case keyEntry:
		return s.isNamePast(l, m)
	}
	return false
}

// isNamePast is isPast for a name. What the name was given to got it with its last merge,
// unless it was moved since: then the base has it under the name that it lost. Where
// the side took the name away, the base goes on once it means what the side never saw there.
func (s *Side) isNamePast(l *layer, m *Mutation) bool {
	_, is, err := s.entry(m.Key)
	if err != nil {
		return false
	}
	if is.Object == 0 {
		base, err := entryAt(l.base, m.Key)
		_, knew := s.named[base][string(m.Key)]
		return err == nil && base != 0 && !knew
	}
	if !s.hasMerged(l, is.Object) {
		return false
	}
	for key := range s.named[is.Object] {
		if _, now, err := s.entry([]byte(key)); err != nil || now.Object == is.Object {
			continue
		}
		if base, err := entryAt(l.base, []byte(key)); err != nil || base == is.Object {
			return false
		}
	}
	return true
}

// hasMerged reports whether the base has what the layer made of an object: in a record that
// says so, or the object is gone there. Once the side has heard of the merge, its own
// record has the number that the content has at the active.
func (s *Side) hasMerged(l *layer, o ids.Object) bool {
	key := string(objectKey(keyInode, o))
	at, ok := l.at[key]
	if !ok || l.list[at].Value == nil {
		return false
	}
	is, err := DecodeInode(o, l.list[at].Value)
	if err != nil {
		return false
	}
	heard := ids.Serial(is.Version) < FirstOfSide
	if heard {
		if done, err := s.isDone(o); err != nil || !done || s.begun[key].merged == 0 {
			return false
		}
	}
	base, err := readInode(l.base, o)
	switch {
	case err != nil:
		return false
	case base == nil:
		gone, err := isUsedUp(l.base, o)
		return err == nil && gone
	case heard:
		return base.Version >= is.Version && base.Ctime >= is.Ctime
	}
	return base.Side.Merged >= is.Version
}
