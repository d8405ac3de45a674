package tree

import (
	"bytes"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Merge is all that the side did to one object, for its active, with the bytes that
// go in the body; nil: nothing. Content of manifests is named by its chunks. With
// above it says where the object's directory was, which takes longer.
func (s *Side) Merge(o ids.Object, n Nodes, node ids.Node, now int64, above bool) (*pb.Merge, []byte, error) {
	const op fault.Op = "tree.Merge"
	m, err := s.changed(o)
	if err != nil || m == nil {
		return nil, nil, fault.Wrap(fault.IO, op, o.String(), err)
	}
	m.Node = string(node)
	if m.AtNs == 0 {
		m.AtNs = now
	}
	var body []byte
	if m.Attr != nil {
		body, err = s.fillContent(o, n, m)
	}
	if err == nil && m.Name == nil {
		err = s.fillName(m)
	}
	if err == nil && above {
		err = s.fillAbove(m)
	}
	return m, body, fault.Wrap(fault.IO, op, o.String(), err)
}

// fillContent fills in content and extended attributes, and returns the bytes that
// lie beside the record.
func (s *Side) fillContent(o ids.Object, n Nodes, m *pb.Merge) (body []byte, err error) {
	is, err := readInode(s, o)
	if err != nil {
		return nil, err
	}
	if m.Changed {
		m.Xattrs = is.acls()
		err = scanXattrs(s, o, func(name string, value []byte) bool {
			m.Xattrs = append(m.Xattrs, &pb.Xattr{Name: name, Value: bytes.Clone(value)})
			return true
		})
	}
	if err != nil || !m.Wrote {
		return nil, err
	}
	if err := addContent(s, is, m.Attr); err != nil {
		return nil, err
	}
	m.SideVersion = is.Version
	size := is.Size
	m.Content = &pb.Commit{Extend: &size, MtimeNs: is.Mtime}
	switch {
	case is.Beside:
		body = m.Attr.Content.Inline
		m.Content.Extents = []*pb.Extent{{Length: uint64(len(body)), Source: &pb.Extent_BodyOffset{}}}
	case !is.Root.IsZero():
		extents, err := chunk.Extents(n, is.root(), 0, is.Size, 0)
		if err != nil {
			return nil, err
		}
		m.Content.Extents = ChunkExtents(extents)
	}
	return body, nil
}

// fillName finds a name that the object has at the side.
func (s *Side) fillName(m *pb.Merge) error {
	switch {
	case len(m.Gained) > 0:
		m.Name = m.Gained[0]
		return nil
	case m.Attr == nil:
		return nil
	case m.Attr.Parent == 0: // it has several names, or had
		return s.fillAnyName(m)
	}
	name, err := s.nameIn(ids.Object(m.Attr.Parent), ids.Object(m.Object))
	if err == nil && name != nil {
		m.Name = &pb.Named{Dir: m.Attr.Parent, Name: name}
	}
	return err
}

// fillAnyName looks at all names of the slice.
func (s *Side) fillAnyName(m *pb.Merge) error {
	return s.Scan([]byte{keyEntry}, []byte{keyEntry + 1}, func(key, value []byte) bool {
		if e, ok, err := firstEntry(value); ok && err == nil && uint64(e.Object) == m.Object {
			m.Name = &pb.Named{Dir: uint64(objectOf(key)), Name: bytes.Clone(key[9:])}
		}
		return m.Name == nil
	})
}

// nameIn finds the name of an object in a directory; nil: it has none there.
func (s *Side) nameIn(dir, o ids.Object) ([]byte, error) { return nameIn(s, dir, o) }

func nameIn(v View, dir, o ids.Object) (name []byte, err error) {
	prefix := objectKey(keyEntry, dir)
	err = v.Scan(prefix, endOf(prefix), func(key, value []byte) bool {
		if e, ok, err := firstEntry(value); ok && err == nil && e.Object == o {
			name = bytes.Clone(key[len(prefix):])
		}
		return name == nil
	})
	return name, err
}

// fillAbove says where the directories are that a merge gives names in.
func (s *Side) fillAbove(m *pb.Merge) error {
	known := map[uint64]bool{}
	for _, n := range append([]*pb.Named{m.Name}, m.Gained...) {
		if n == nil || known[n.Dir] {
			continue
		}
		known[n.Dir] = true
		up, err := s.above(ids.Object(n.Dir))
		if err != nil {
			return err
		}
		m.Above = append(m.Above, &pb.Way{Dir: n.Dir, Up: up})
	}
	return nil
}

// above is the way from a directory up, as far as the slice goes.
func (s *Side) above(dir ids.Object) (out []*pb.Named, err error) {
	for range maxDepth {
		n, err := readInode(s, dir)
		if err != nil || n == nil || n.Parent == dir || n.Parent.Slice() != s.slice {
			return out, err
		}
		name, err := s.nameIn(n.Parent, dir)
		if err != nil || name == nil {
			return out, err
		}
		out = append(out, &pb.Named{Dir: uint64(n.Parent), Name: name})
		dir = n.Parent
	}
	return out, nil
}

// Way lists the names from the topmost directory of a slice down to one of its
// directories, and that topmost one, whose own name is in another slice or none.
func Way(v View, dir ids.Object) (names []string, top ids.Object, err error) {
	const op fault.Op = "tree.Way"
	for range maxDepth {
		n, err := readInode(v, dir)
		if err != nil || n == nil {
			return names, 0, fault.Wrap(fault.IO, op, dir.String(), err)
		}
		if n.Parent == dir || n.Parent.Slice() != dir.Slice() {
			return names, dir, nil
		}
		name, err := nameIn(v, n.Parent, dir)
		if err != nil || name == nil {
			return names, 0, fault.Wrap(fault.IO, op, dir.String(), err)
		}
		names = append([]string{string(name)}, names...)
		dir = n.Parent
	}
	return names, 0, nil
}

// Merged is what is to be kept once the active has merged an object as m says, by this
// serial, and answered so: what the side did to it since begins from there.
func (s *Side) Merged(m *pb.Merge, r *pb.Result, serial ids.Serial) ([]SideChange, error) {
	changes, err := s.merged(m, r)
	for i := range changes {
		changes[i].Merged = serial
	}
	return changes, err
}

func (s *Side) merged(m *pb.Merge, r *pb.Result) (changes []SideChange, err error) {
	o := ids.Object(m.Object)
	if m.Attr != nil && r.GetAttr() == nil {
		return s.giveUp(o)
	}
	keep := func(key, now []byte) {
		value, ok, e := s.over.Get(key)
		if err = orKeep(err, e); !ok {
			value = nil
		}
		changes = append(changes, SideChange{Key: key, Value: value, Before: now, Serial: s.begun[string(key)].serial})
	}
	for _, n := range m.Gained {
		key := nameKey(keyEntry, ids.Object(n.Dir), n.Name)
		keep(key, appendEntries(nil, Entry{Object: o, Type: m.Attr.Mode & TypeMask}))
	}
	for _, n := range m.Lost {
		key := nameKey(keyEntry, ids.Object(n.Dir), n.Name)
		if e, is, e2 := s.entry(key); e2 == nil && e.Object == o && is.Object == 0 {
			keep(key, nil)
		}
	}
	if m.Changed {
		prefix := objectKey(keyXattr, o)
		for _, at := range s.over.between(prefix, endOf(prefix)) {
			c := &s.over.list[at]
			changes = append(changes, SideChange{Key: c.Key, Value: c.Value, Before: c.Value, Serial: s.begun[string(c.Key)].serial})
		}
	}
	record, e := s.mergedRecord(o, m, r)
	if err = orKeep(err, e); record != nil {
		changes = append(changes, *record)
	}
	return changes, err
}

// giveUp takes an object away that the active has no more: what the side wrote into it
// is kept in another one there.
func (s *Side) giveUp(o ids.Object) (out []SideChange, err error) {
	for key := range s.named[o] {
		if _, is, e := s.entry([]byte(key)); e != nil || is.Object != o {
			err = orKeep(err, e)
			continue
		}
		out = append(out, SideChange{Key: []byte(key), Before: s.begun[key].before, Serial: s.begun[key].serial})
	}
	record := objectKey(keyInode, o)
	return append(out, SideChange{Key: record, Serial: s.begun[string(record)].serial}), err
}

func orKeep(first, then error) error {
	if first != nil {
		return first
	}
	return then
}

// mergedRecord makes the record that was merged the one that the side began from,
// with the number that the content has at the active now.
func (s *Side) mergedRecord(o ids.Object, m *pb.Merge, r *pb.Result) (*SideChange, error) {
	key := objectKey(keyInode, o)
	first, touched := s.begun[string(key)]
	if !touched {
		return nil, nil
	}
	is, err := readInode(s, o)
	if err != nil {
		return nil, err
	}
	if m.Attr == nil || is == nil {
		out := &SideChange{Key: key, Serial: first.serial}
		if is != nil {
			out.Value = AppendInode(nil, is)
		}
		return out, nil
	}
	was := *is
	is.Side.Merged = max(is.Side.Merged, r.GetAttr().GetSideVersion())
	was.Mode, was.UID, was.GID, was.Version, was.Side.Merged = m.Attr.Mode, m.Attr.Uid, m.Attr.Gid, r.GetAttr().GetVersion(), is.Side.Merged
	was.Side.Began = 0
	if is.Side.Began = was.Version; is.Version == m.Attr.Version { // nothing was written since
		is.Version, is.Side.Began = was.Version, 0
	}
	return &SideChange{Key: key, Value: AppendInode(nil, is), Before: AppendInode(nil, &was), Serial: first.serial}, nil
}
