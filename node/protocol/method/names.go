package method

import (
	"slices"

	"cartwheel.dev/node/protocol/pb"
)

// Any reports whether something is so of an operation; of a batch, whether it is so
// of an operation in it.
func Any(o *pb.Operation, is func(*pb.Operation) bool) bool {
	if b := o.GetBatch(); b != nil {
		return slices.ContainsFunc(b.Operations, is)
	}
	return is(o)
}

// Names lists the objects that a client's operation names by ID. A user's client
// shows a ticket for each that it has one for; a node checks each that it is
// shown none for. Of a batch that is each object that an operation in it names and
// none before that one makes.
func Names(o *pb.Operation) []uint64 {
	switch o := o.GetOp().(type) {
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
	case *pb.Operation_Batch:
		return namedInBatch(o.Batch.GetOperations())
	}
	return nil
}

func namedInBatch(list []*pb.Operation) (out []uint64) {
	known := make(map[uint64]struct{}, len(list)+1)
	for _, o := range list {
		if o.GetBatch() != nil {
			continue // is refused
		}
		for _, n := range Names(o) {
			if _, is := known[n]; !is {
				known[n] = struct{}{}
				out = append(out, n)
			}
		}
		if made := o.GetCreate().GetObject(); made != 0 {
			known[made] = struct{}{}
		}
	}
	return out
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
