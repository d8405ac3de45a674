package tree

import (
	"bytes"
	"maps"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Side is the state of a slice at a node that may not change it: what clients wrote
// below .EventualConsistency while the active was away, over what the node has of
// the slice. It is a View. Of each key that the side changed it keeps what was there
// when the side changed it first; Merges compares the two. One goroutine at a time
// uses a Side, and those beside it.
type Side struct {
	slice  ids.Slice
	base   View
	over   *layer
	begun  map[string]begun
	named  map[ids.Object]map[string]struct{} // the names' keys that meant an object first, or mean it now
	others Others
	size   int
}

// begun is what a side keeps of a key beside its value.
type begun struct {
	before []byte     // what was there when the side changed it first; nil: nothing
	serial ids.Serial // of the operation that changed it last; 0: it is not known
	merged ids.Serial // the active's, by which the key became as it began; 0: by none
}

// SideChange is what a side did to one key. A nil Value is a key that is gone, a nil
// Before one that was not there.
type SideChange struct {
	Key, Value, Before []byte
	// Serial is that of the side's operation which changed the key last; 0: it is not
	// known.
	Serial ids.Serial
	// Merged is the active's serial by which the key became as Before says; 0: by none.
	Merged ids.Serial
}

// NewSide returns a side over a base, with the changes that were kept. others are the
// side logs beside it; nil: there are none.
func NewSide(slice ids.Slice, base View, others Others, kept []SideChange) *Side {
	s := &Side{slice: slice, base: base, others: others, over: newLayer(base, len(kept)), begun: map[string]begun{}, named: map[ids.Object]map[string]struct{}{}}
	s.Apply(kept)
	return s
}

// Get implements View.
func (s *Side) Get(key []byte) ([]byte, bool, error) { return s.over.Get(key) }

// Scan implements View.
func (s *Side) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	return s.over.Scan(from, to, fn)
}

// Changes are all that is to be kept of a side.
func (s *Side) Changes() []SideChange {
	out := make([]SideChange, 0, len(s.over.list))
	for i := range s.over.list {
		out = append(out, s.changeAt(i))
	}
	return out
}

// Size is how many bytes the changes take in memory, about.
func (s *Side) Size() int { return s.size }

// Evaluate evaluates an operation of a client over the side. It changes nothing:
// once the changes are kept, Apply makes them so. A number that the operation needs
// is made of random. What the side cannot do is NotActive: operations over several
// slices, moves of directories, and what an intent holds.
func (s *Side) Evaluate(n Nodes, c Context, op *pb.Operation, body []byte, random func() uint64) (Outcome, []SideChange) {
	c.Side = true
	v := Over(s, s.base)
	err := s.prepare(v, op, random)
	if err == nil {
		err = hasBase(v, op)
	}
	if err != nil {
		return Outcome{Err: err}, nil
	}
	out := Evaluate(v, n, c, op, body)
	if out.Across || out.Blocked != 0 {
		return Outcome{Err: fault.E(fault.NotActive, "tree.Side", "", "this needs the slice's active, which is away")}, nil
	}
	if !out.Done() {
		return out, nil
	}
	changes, err := s.changes(c.Serial, out.Mutations)
	if err != nil {
		return Outcome{Err: fault.Wrap(fault.IO, "tree.Side", "", err)}, nil
	}
	return out, changes
}

// changes is what is to be kept of the mutations of an operation.
func (s *Side) changes(serial ids.Serial, mutations []Mutation) ([]SideChange, error) {
	mutations, err := s.withContent(mutations)
	if err != nil {
		return nil, err
	}
	out := make([]SideChange, 0, len(mutations))
	for _, m := range mutations {
		if m.Key[0] == keyRefs || m.Key[0] == keyDead {
			continue // the active counts what is merged
		}
		is, known := s.begun[string(m.Key)]
		if !known {
			value, had, err := s.base.Get(m.Key)
			if err != nil {
				return nil, err
			}
			if had {
				is.before = append([]byte{}, value...)
			}
		}
		out = append(out, SideChange{Key: m.Key, Value: m.Value, Before: is.before, Serial: serial, Merged: is.merged})
	}
	return out, nil
}

// prepare refuses what only actives do, and gives new objects their numbers.
func (s *Side) prepare(v View, op *pb.Operation, random func() uint64) error {
	refused := fault.E(fault.NotActive, "tree.Side", "", "this needs the slice's active, which is away")
	switch o := op.Op.(type) {
	case *pb.Operation_Create:
		if o.Create.Nameless {
			return refused
		}
		if o.Create.Object != 0 {
			return nil
		}
		if _, err := Lookup(v, ids.Object(o.Create.Dir), o.Create.Name); err == nil {
			return nil
		}
		o.Create.Object = uint64(SideObject(s.slice, random()))
	case *pb.Operation_Rename:
		e, err := Lookup(v, ids.Object(o.Rename.Dir), o.Rename.Name)
		if err == nil && (e.Type == TypeDir || o.Rename.Exchange) {
			return refused
		}
	case *pb.Operation_Batch:
		for _, part := range o.Batch.Operations {
			if err := s.prepare(v, part, random); err != nil {
				return err
			}
		}
	case *pb.Operation_Unlink, *pb.Operation_Link, *pb.Operation_SetAttr, *pb.Operation_SetXattr, *pb.Operation_Commit:
	default:
		return refused
	}
	return nil
}

// Apply makes changes so. It keeps their memory.
func (s *Side) Apply(changes []SideChange) {
	mutations := make([]Mutation, len(changes))
	for i, c := range changes {
		mutations[i] = Mutation{Key: c.Key, Value: c.Value}
		is, known := s.begun[string(c.Key)]
		if known {
			was := s.changeAt(s.over.at[string(c.Key)])
			s.size -= keptSize(&was)
		}
		s.size += keptSize(&c)
		s.begun[string(c.Key)] = begun{c.Before, c.Serial, max(is.merged, c.Merged)}
		if c.Key[0] == keyEntry {
			s.nameMeans(c.Key, c.Before)
			s.nameMeans(c.Key, c.Value)
		}
	}
	s.over.add(mutations)
}

// keptSize is how many bytes a change takes in memory, about.
func keptSize(c *SideChange) int { return 2*len(c.Key) + len(c.Before) + len(c.Value) + 200 }

// nameMeans notes the object that a name's value leads to. Objects that it does not
// lead to any more stay noted.
func (s *Side) nameMeans(key, value []byte) {
	e, ok, err := firstEntry(value)
	if value == nil || !ok || err != nil {
		return
	}
	keys := s.named[e.Object]
	if keys == nil {
		keys = map[string]struct{}{}
		s.named[e.Object] = keys
	}
	keys[string(key)] = struct{}{}
}

// entry is what a name meant when the side changed it first, and what it means.
func (s *Side) entry(key []byte) (was, is Entry, err error) {
	if before := s.begun[string(key)].before; before != nil {
		if was, _, err = firstEntry(before); err != nil {
			return was, is, err
		}
	}
	value, ok, err := s.over.Get(key)
	if err == nil && ok {
		is, _, err = firstEntry(value)
	}
	return was, is, err
}

// inodes are the records of an object as the side began and as they are; nil: none.
func (s *Side) inodes(o ids.Object) (was, is *Inode, err error) {
	key := objectKey(keyInode, o)
	first, touched := s.begun[string(key)]
	if is, err = readInode(s, o); err != nil || !touched {
		return is, is, err
	}
	if first.before != nil {
		was, err = DecodeInode(o, first.before)
	}
	return was, is, err
}

// changed says what the side did to an object, without its content; nil: nothing
// that is to be merged.
func (s *Side) changed(o ids.Object) (*pb.Merge, error) {
	was, is, err := s.inodes(o)
	if err != nil {
		return nil, err
	}
	m := &pb.Merge{Object: uint64(o)}
	if is != nil && is.Nlink == 0 {
		is = nil
	}
	if was == nil && is == nil {
		return nil, nil
	}
	between, err := s.fillNames(o, m)
	if err != nil {
		return nil, err
	}
	if was != nil {
		m.BaseVersion = was.Version
	}
	if is == nil {
		m.Lost = append(m.Lost, between...)
		return m, nil
	}
	m.Attr, m.AtNs = is.Attr(), is.Ctime
	m.Fresh = was == nil
	m.Wrote = is.IsRegular() && (was == nil || was.Version != is.Version)
	m.Changed = was == nil || was.Mode != is.Mode || was.UID != is.UID || was.GID != is.GID ||
		!bytes.Equal(was.ACL, is.ACL) || !bytes.Equal(was.DefaultACL, is.DefaultACL) || s.hasXattrs(o)
	if !m.Wrote && !m.Changed && len(m.Lost) == 0 && len(m.Gained) == 0 {
		return nil, nil
	}
	m.Lost = append(m.Lost, between...)
	return m, nil
}

// HasOf reports whether something of an object, or of one of these names in it, is to be
// merged, or may be.
func (s *Side) HasOf(o ids.Object, names [][]byte) bool {
	m, err := s.changed(o)
	return m != nil || err != nil || slices.ContainsFunc(names, func(name []byte) bool {
		was, is, err := s.entry(nameKey(keyEntry, o, name))
		return was.Object != is.Object || err != nil
	})
}

// hasXattrs reports whether the side changed extended attributes of an object.
func (s *Side) hasXattrs(o ids.Object) bool {
	prefix := objectKey(keyXattr, o)
	for _, at := range s.over.between(prefix, endOf(prefix)) {
		c := &s.over.list[at]
		before := s.begun[string(c.Key)].before
		if (before == nil) != (c.Value == nil) || !bytes.Equal(before, c.Value) {
			return true
		}
	}
	return false
}

// fillNames fills in which names the side gave an object and took from it, and returns
// those that the object had meanwhile: the active may have given it one of them late, or
// in a merge whose answer was lost.
func (s *Side) fillNames(o ids.Object, m *pb.Merge) (between []*pb.Named, err error) {
	for _, key := range slices.Sorted(maps.Keys(s.named[o])) {
		if _, kept := s.begun[key]; !kept {
			continue
		}
		was, is, err := s.entry([]byte(key))
		if err != nil {
			return nil, err
		}
		if was.Object == is.Object && is.Object == o {
			continue
		}
		n := &pb.Named{Dir: uint64(objectOf([]byte(key))), Name: []byte(key[9:])}
		switch o {
		case was.Object:
			if is.Object == 0 {
				m.Lost = append(m.Lost, n)
			} else { // that one's merge takes it from this one
				m.Given = append(m.Given, n)
			}
		case is.Object:
			if n.Replaced = uint64(was.Object); was.Object != 0 {
				before, now, err := s.inodes(was.Object)
				if err != nil {
					return nil, err
				}
				if before != nil {
					n.ReplacedVersion = before.Version
				}
				n.ReplacedLives = now != nil && now.Nlink > 0
			}
			m.Gained = append(m.Gained, n)
		default:
			between = append(between, n)
		}
	}
	return between, nil
}
