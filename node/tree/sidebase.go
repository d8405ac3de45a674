package tree

import (
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// A copy may lack what its active acknowledged last. So a client says what it knows of
// a file when it goes on with that at a side: else the rest of a file would be spliced
// into a copy without its beginning, and a name would show before the content.

// The same goes for names. A client that moved a file at one node may find it under its
// old name at another, and a create of that name would open the moved file.

// hasBase answers Again where what a side shows lacks content that the caller of an
// operation knows, or names that it changed.
func hasBase(v View, op *pb.Operation) error {
	const name fault.Op = "tree.hasBase"
	switch is, err := hasOldNames(v, op); {
	case err != nil:
		return fault.Wrap(fault.IO, name, "", err)
	case is:
		return fault.E(fault.Again, name, "", "this copy lacks what the client did to a name")
	case op.Base == 0 && op.SideBase == 0:
		return nil
	}
	o, err := goesOnWith(v, op)
	if err != nil || o == 0 {
		return fault.Wrap(fault.IO, name, "", err)
	}
	n, err := readInode(v, o)
	if err != nil || n == nil { // the evaluation says that it is not there
		return fault.Wrap(fault.IO, name, o.String(), err)
	}
	if n.IsRegular() && !n.hasVersion(op.Base, op.SideBase) {
		return fault.E(fault.Again, name, o.String(), "this copy lacks what the client knows of the file")
	}
	return nil
}

// hasOldNames reports whether a name of an operation means what its caller took it from.
func hasOldNames(v View, op *pb.Operation) (bool, error) {
	if len(op.NameWas)+len(op.NewNameWas) == 0 {
		return false, nil
	}
	first, second := namedIn(op)
	is, err := means(v, first, op.NameWas)
	if err != nil || is {
		return is, err
	}
	return means(v, second, op.NewNameWas)
}

// means reports whether a name means one of some objects; n may be nil.
func means(v View, n *pb.Named, list []uint64) (bool, error) {
	if n == nil || len(list) == 0 {
		return false, nil
	}
	is, err := meaning(v, n.Dir, n.Name)
	return slices.Contains(list, uint64(is)), err
}

// namedIn are the name that an operation gives, takes or moves, and a rename's new one.
func namedIn(op *pb.Operation) (name, newName *pb.Named) {
	switch o := op.Op.(type) {
	case *pb.Operation_Create:
		name = &pb.Named{Dir: o.Create.Dir, Name: o.Create.Name}
	case *pb.Operation_Link:
		name = &pb.Named{Dir: o.Link.Dir, Name: o.Link.Name}
	case *pb.Operation_Unlink:
		name = &pb.Named{Dir: o.Unlink.Dir, Name: o.Unlink.Name}
	case *pb.Operation_Rename:
		name = &pb.Named{Dir: o.Rename.Dir, Name: o.Rename.Name}
		newName = &pb.Named{Dir: o.Rename.NewDir, Name: o.Rename.NewName}
	}
	return name, newName
}
