package tree

import (
	"cartwheel.dev/geo-config/fault"
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
