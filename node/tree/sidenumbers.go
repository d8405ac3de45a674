package tree

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Versions, changes and objects of a side log have numbers that no active gives.

// FirstOfSide is below the serials that operations at a side have. No active gives such
// ones.
const FirstOfSide ids.Serial = 1 << 62

// IsOfSide reports whether attributes are those of an object as a side has it, and its
// active has not.
func IsOfSide(a *pb.Attr) bool {
	if a.GetMode()&TypeMask == TypeRegular { // its content counts
		return ids.Serial(a.Version) >= FirstOfSide
	}
	return ids.Serial(a.GetChange()) >= FirstOfSide
}

// SideObject is an object number that a side chooses, of random: one that no active
// gives.
func SideObject(slice ids.Slice, random uint64) ids.Object {
	return ids.NewObject(slice, sideNumbers+random%(1<<ids.NumberBits-sideNumbers))
}

// rewrote gives a file's content the serial of an operation as its version. Of a side log's it
// notes which version of the active's it began from.
func (n *Inode) rewrote(by ids.Serial) {
	switch was := ids.Serial(n.Version); {
	case by < FirstOfSide:
		n.Side.Began = 0
	case was < FirstOfSide:
		n.Side.Began = uint64(was)
	}
	n.Version = uint64(by)
}

// hasVersion reports whether a file at a side has the active's version base, or, where
// the caller knows a side log's, that one: as the side has it, or merged. What a side log
// has of a file has the version that it began from, and none that came later.
func (n *Inode) hasVersion(base, side uint64) bool {
	switch {
	case side != 0:
		return n.Version == side || n.Side.Merged >= side
	case ids.Serial(n.Version) >= FirstOfSide:
		return n.Side.Began >= base
	}
	return n.Version >= base
}

// hasSide refuses, as Again, to go on with a file of which the caller knows what a side
// log has, and the active has not merged, and with a name that it changed at a side.
func hasSide(v View, op *pb.Operation) error {
	switch is, err := hasOldNames(v, op); {
	case err != nil:
		return err
	case is:
		return refusal(fault.Again)
	case op.SideBase == 0:
		return nil
	}
	o, err := goesOnWith(v, op)
	if err != nil || o == 0 {
		return err
	}
	n, err := readInode(v, o)
	if err == nil && n != nil && n.IsRegular() && n.Side.Merged < op.SideBase {
		err = refusal(fault.Again)
	}
	return err
}

// noteMerged notes which content of a side log a file has by now. Only a merge does.
func noteMerged(t *txn, n *loaded, version uint64) error {
	if t.c.Client != 0 || !t.c.Side {
		return refusal(fault.Permission)
	}
	if version > n.Side.Merged {
		n.Side.Merged = version
		if n.Side.Began = 0; !t.c.SideLost {
			n.Side.Began = n.Version
		}
		n.dirty, n.whole = true, true
		t.number(n)
	}
	t.result.Attr = n.Attr()
	return t.addContent(n.Inode, t.result.Attr)
}

// GoesOnWith is the key of the record of the file that an operation goes on with; nil: it
// goes on with none.
func GoesOnWith(v View, op *pb.Operation) []byte {
	o, err := goesOnWith(v, op)
	switch is := op.Op.(type) {
	case *pb.Operation_SetAttr:
		o = ids.Object(is.SetAttr.Object)
	case *pb.Operation_SetXattr:
		o = ids.Object(is.SetXattr.Object)
	case *pb.Operation_Unlink:
		o, err = meaning(v, is.Unlink.Dir, is.Unlink.Name)
	}
	if err != nil || o == 0 {
		return nil
	}
	if n, err := readInode(v, o); err != nil || n == nil || n.IsDir() {
		return nil
	}
	return objectKey(keyInode, o)
}

// goesOnWith is the file that an operation goes on with; 0: none.
func goesOnWith(v View, op *pb.Operation) (ids.Object, error) {
	switch o := op.Op.(type) {
	case *pb.Operation_Commit:
		return ids.Object(o.Commit.Object), nil
	case *pb.Operation_Link:
		return ids.Object(o.Link.Object), nil
	case *pb.Operation_Rename:
		return meaning(v, o.Rename.Dir, o.Rename.Name)
	}
	return 0, nil
}

// meaning is the object that a name means; 0: none.
func meaning(v View, dir uint64, name []byte) (ids.Object, error) {
	return entryAt(v, nameKey(keyEntry, ids.Object(dir), name))
}

// entryAt is the object that a name's key leads to; 0: none.
func entryAt(v View, key []byte) (ids.Object, error) {
	value, ok, err := v.Get(key)
	if err != nil || !ok {
		return 0, err
	}
	e, _, err := firstEntry(value)
	return e.Object, err
}
