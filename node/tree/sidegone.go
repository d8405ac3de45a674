package tree

import "cartwheel.dev/geo-config/ids"

// A side log may be in use all the time, and never be merged whole. So what is merged
// goes out of it change by change.

// Gone lists the changes of which nothing is left to be merged, and which a copy of the
// slice shows that has everything up to a serial of the active's.
func (s *Side) Gone(applied ids.Serial) (out []SideChange, err error) {
	gone := map[ids.Object]bool{} // objects whose records go
	for at := range s.over.list {
		c := s.changeAt(at)
		if c.Key[0] != keyInode || c.Merged > applied {
			continue
		}
		is, err := s.isDone(objectOf(c.Key))
		if err != nil {
			return nil, err
		}
		gone[objectOf(c.Key)] = is
	}
	for at := range s.over.list {
		c := s.changeAt(at)
		is := false
		switch c.Key[0] {
		case keyInode, keyContent, keyXattr:
			is = gone[objectOf(c.Key)]
		case keyEntry:
			was, now, err := s.entry(c.Key)
			if err != nil {
				return nil, err
			}
			is = was.Object == now.Object && c.Merged <= applied
		}
		if is {
			out = append(out, c)
		}
	}
	return out, nil
}

// isDone reports whether nothing of an object is left to be merged. One that has no name
// may still be open.
func (s *Side) isDone(o ids.Object) (bool, error) {
	_, is, err := s.inodes(o)
	if err != nil || is != nil && is.Nlink == 0 {
		return false, err
	}
	m, err := s.changed(o)
	return m == nil, err
}

// Forget takes changes out, but for those of keys that were changed since.
func (s *Side) Forget(list []SideChange) {
	for i := range list {
		key := list[i].Key
		c, is := s.Change(key)
		if !is || c.Serial != list[i].Serial {
			continue
		}
		s.size -= keptSize(&c)
		s.over.remove(key)
		delete(s.begun, string(key))
	}
	if len(s.named) <= 2*len(s.begun)+64 {
		return
	}
	for o, keys := range s.named {
		for key := range keys {
			if _, kept := s.begun[key]; !kept {
				delete(keys, key)
			}
		}
		if len(keys) == 0 {
			delete(s.named, o)
		}
	}
}
