package tree

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// A copy may lack what its active acknowledged last. So a client says what it knows of
// a file when it goes on with that at a side: else the rest of a file would be spliced
// into a copy without its beginning, and a name would show before the content.

// hasBase answers Again where the side lacks content that the caller of an operation
// knows.
func (s *Side) hasBase(op *pb.Operation) error {
	if op.Base == 0 && op.SideBase == 0 {
		return nil
	}
	const name fault.Op = "tree.hasBase"
	o, err := goesOnWith(s, op)
	if err != nil || o == 0 {
		return fault.Wrap(fault.IO, name, "", err)
	}
	n, err := readInode(s, o)
	if err != nil || n == nil { // the evaluation says that it is not there
		return fault.Wrap(fault.IO, name, o.String(), err)
	}
	if n.IsRegular() && !n.hasVersion(op.Base, op.SideBase) {
		return fault.E(fault.Again, name, o.String(), "this copy lacks what the client knows of the file")
	}
	return nil
}

// hasSide refuses, as Again, to go on with a file of which the caller knows what a side
// log has, and the active has not merged.
func (t *txn) hasSide(op *pb.Operation) error {
	if op.SideBase == 0 || t.c.Side {
		return nil
	}
	o, err := goesOnWith(t.view, op)
	if err != nil || o == 0 {
		return err
	}
	n, err := readInode(t.view, o)
	if err == nil && n != nil && n.IsRegular() && n.SideVersion < op.SideBase {
		err = refusal(fault.Again)
	}
	return err
}

// mergedSide notes which content of a side log a file has by now. Only a merge does.
func (t *txn) mergedSide(n *loaded, version uint64) error {
	if t.c.Client != 0 || !t.c.Side {
		return refusal(fault.Permission)
	}
	if version > n.SideVersion {
		n.SideVersion = version
		n.dirty, n.whole = true, true
		t.number(n)
	}
	t.result.Attr = n.Attr()
	return t.addContent(n.Inode, t.result.Attr)
}

// goesOnWith is the file that an operation goes on with; 0: none.
func goesOnWith(v View, op *pb.Operation) (ids.Object, error) {
	switch o := op.Op.(type) {
	case *pb.Operation_Commit:
		return ids.Object(o.Commit.Object), nil
	case *pb.Operation_Link:
		return ids.Object(o.Link.Object), nil
	case *pb.Operation_Rename:
		value, ok, err := v.Get(nameKey(keyEntry, ids.Object(o.Rename.Dir), o.Rename.Name))
		if err != nil || !ok {
			return 0, err
		}
		e, _, err := firstEntry(value)
		return e.Object, err
	}
	return 0, nil
}

// hasVersion reports whether a file at a side has the active's version base, or, where
// the caller knows a side log's, that one: as the side has it, or merged. What a side log
// has of a file has the version that it began from, and none that came later.
func (n *Inode) hasVersion(base, side uint64) bool {
	switch {
	case side != 0:
		return n.Version == side || n.SideVersion >= side
	case ids.Serial(n.Version) >= FirstOfSide:
		return n.Began >= base
	}
	return n.Version >= base
}
