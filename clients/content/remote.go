package content

import (
	"context"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// Remote is the cluster as the engine sees it. Its methods may be called from
// many goroutines. They end when ctx does. Errors are faults.
//
// What the engine hands in (bodies, addresses) is not changed by it until the
// call has returned; what comes back belongs to the engine.
type Remote interface {
	// Commit runs one splice exactly once: the implementation numbers the
	// operation and retries it under the same number until it knows the
	// outcome or ctx ends. Any error is taken for final: the engine never
	// sends the same bytes again, except after a fault of kind Missing, which
	// says that it was not run because chunks were not there. The result's
	// Attr should carry Content; without it the engine asks Version later.
	Commit(ctx context.Context, c Commit) (*pb.Result, error)
	// HaveChunks answers for each chunk whether the object's slice lacks it. Sizes
	// and body are those of PutChunks: the implementation may have to prove that
	// it has the bytes.
	HaveChunks(ctx context.Context, object ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) (missing []bool, err error)
	// PutChunks stores chunks with the members of the object's slice; on
	// return they are on disk there. Chunks lie in the parts of body end to
	// end, whatever the parts' boundaries.
	PutChunks(ctx context.Context, object ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) error
	// GetChunks returns the parts end to end, all of them or an error. The engine
	// asks for less than 2 MiB at a time, and checks whole chunks. try is how often
	// they have come damaged: each time another member is to be asked.
	GetChunks(ctx context.Context, object ids.Object, parts []Part, try int) ([]byte, error)
	// Range resolves a range of one version and reads it, if wanted. At most
	// 1 MiB of data is asked for, and all of it is needed; extents may end
	// before the range does.
	Range(ctx context.Context, object ids.Object, q Query) (Answer, error)
	// Version returns the object's current attributes with Content, from the
	// active or from what a lease still covers.
	Version(ctx context.Context, object ids.Object) (*pb.Attr, error)
}

// Commit is one splice on its way to the active.
type Commit struct {
	Object ids.Object
	Splice *pb.Commit
	// Body is the bytes of the extents with a body_offset, end to end.
	Body [][]byte
	// As is what the last writing handle was opened with.
	As any
}

// Part asks for [Offset, Offset+Length) of a chunk of Size bytes, which is at At
// in the version of the file with this root. The parts of one call are of one
// version.
type Part struct {
	Address        chunk.Address
	Offset, Length uint32
	Size           uint32
	Root           chunk.Root
	At             uint64
	// Shared has the nodes of this client's site be asked before the members of
	// the slice. It is the same in all parts of one call.
	Shared bool
}

// Query asks for [Offset, Offset+Length) of a version; Data asks for the bytes,
// and Extents for the extents. The range lies inside the version's size.
type Query struct {
	Root           chunk.Root
	Offset, Length uint64
	Data, Extents  bool
}

// Answer holds extents in chunk.AppendExtents' encoding and the range's bytes,
// holes as zeros; each where it was asked for.
type Answer struct {
	Extents []byte
	Data    []byte
}
