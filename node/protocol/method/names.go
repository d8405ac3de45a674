package method

import "cartwheel.dev/node/protocol/pb"

// Names lists the objects that a client's operation names by ID. A user's client
// shows a ticket for each that it has one for; a node checks each that it is
// shown none for.
func Names(o *pb.Operation) []uint64 {
	switch o := o.Op.(type) {
	case *pb.Operation_Create:
		return []uint64{o.Create.Dir}
	case *pb.Operation_MakeObject:
		return []uint64{o.MakeObject.Parent}
	case *pb.Operation_LinkName:
		return []uint64{o.LinkName.Dir}
	case *pb.Operation_Unlink:
		return []uint64{o.Unlink.Dir}
	case *pb.Operation_Rename:
		return []uint64{o.Rename.Dir, o.Rename.NewDir}
	case *pb.Operation_Link:
		return []uint64{o.Link.Object, o.Link.Dir}
	case *pb.Operation_SetAttr:
		return []uint64{o.SetAttr.Object}
	case *pb.Operation_SetXattr:
		return []uint64{o.SetXattr.Object}
	case *pb.Operation_Commit:
		return []uint64{o.Commit.Object}
	case *pb.Operation_Hold:
		return []uint64{o.Hold.Object}
	}
	return nil
}

// Ticket returns the ticket for an object among those that came with a request,
// or nil.
func Ticket(tickets []*pb.Ticket, o uint64) []byte {
	for _, t := range tickets {
		if t.Object == o {
			return t.Ticket
		}
	}
	return nil
}
