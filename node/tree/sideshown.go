package tree

import "cartwheel.dev/geo-config/ids"

// A side log is kept until all of it is merged and shown, and its copies at other members
// hear of that last. Until then it lies over a state in which the active may have gone
// on: what it merged must not hide what came behind.

// Shown is a side's changes over a base as readers see them: without those of objects
// that the base has by way of the active. It is good until the side changes.
func Shown(s *Side, base View) View {
	s.over.group()
	l := *s.over
	l.base, l.past = base, isPast
	return &l
}

// isPast reports whether a change of a side log is merged in the base. A change of a name
// was merged with the object that it gives the name to.
func isPast(l *layer, m *Mutation) bool {
	switch m.Key[0] {
	case keyInode, keyContent, keyXattr:
		return l.hasMerged(objectOf(m.Key))
	case keyEntry:
		e, ok, err := firstEntry(m.Value)
		return m.Value != nil && ok && err == nil && l.hasMerged(e.Object)
	}
	return false
}

// hasMerged reports whether the base has what the layer wrote into a file: in a record
// that says so, or the file was made at the side and is gone again.
func (l *layer) hasMerged(o ids.Object) bool {
	at, ok := l.at[string(objectKey(keyInode, o))]
	if !ok || l.list[at].Value == nil {
		return false
	}
	is, err := DecodeInode(o, l.list[at].Value)
	if err != nil || ids.Serial(is.Version) < FirstOfSide {
		return false
	}
	base, err := readInode(l.base, o)
	if err != nil {
		return false
	}
	if base != nil {
		return base.Side.Merged >= is.Version
	}
	gone, err := isUsedUp(l.base, o)
	return err == nil && gone
}
