package operate

import (
	"log/slog"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Chunks is the loop's view of the content on this node's disk. It is called
// on the loop's goroutine and must not wait for the network.
type Chunks interface {
	chunk.Reader
	// Has reports whether a chunk is on the disk.
	Has(a chunk.Address) bool
	// PutInline keeps chunks that the journal covers until the next checkpoint.
	PutInline(chunks []tree.Chunk) error
}

// Leases revokes what sessions hold before it changes.
type Leases interface {
	// Change marks what an operation is about to change, so that no lease is
	// granted on it, and returns the mark. Where other sessions than except
	// hold leases on it, ready is false, and then is called, from any
	// goroutine, once they have given them up or ended.
	Change(slice ids.Slice, except uint64, touched []tree.Touch, then func(holders []tree.Holder)) (mark uint64, ready, far bool)
	// Changed takes the mark away: the change is applied, or will not be.
	Changed(mark uint64)
	// Born gives a session leases of kinds NAMES and ALONE on directories of one
	// slice that are about to be made, and returns those that it could give. Nobody
	// else can know of the directories yet. Unborn takes them back.
	Born(session uint64, epoch ids.Epoch, dirs []ids.Object) []*pb.Grant
	Unborn(grants []*pb.Grant)
	// Void drops all leases and locks of a slice: this node acts no more.
	Void(slice ids.Slice)
}

// Network sends frames to other nodes without waiting.
type Network interface {
	// Send sends the slices of payload end to end. It keeps none of the list, and
	// of large slices the bytes, which nobody changes afterwards.
	Send(peer string, class wire.Class, m wire.Method, payload ...[]byte) error
	MaxPayload(class wire.Class) int
}

// Helpers do, on goroutines of their own, what the core asks for and what may
// wait. They answer through the Loop's methods.
type Helpers interface {
	// Swap runs a compare-and-swap on a slice row; then Loop.Swapped.
	Swap(s replica.Swap)
	// Fetch brings missing chunks from other members; then Loop.Held.
	Fetch(slice ids.Slice, serial ids.Serial, epoch ids.Epoch, missing []chunk.Address)
	// Read finds entries in the journal; then Loop.ReadDone.
	Read(r replica.Read)
	// Transfer copies a slice's state here.
	Transfer(t replica.Transfer)
	// Yield revokes the leases of a slice that is handed over; then Loop.Yielded.
	Yield(slice ids.Slice)
	// Role tells that this node's part in a slice changed; led says whether it
	// led the slice until now.
	Role(r replica.Role, led bool)
	// Removed tells that a slice's data may go.
	Removed(slice ids.Slice)
}

// Pending are operations that clients sent to this node as a standby, and that are in
// no log here. Its methods must not block.
type Pending interface {
	// Of returns those of a slice, each client's in the order of their numbers.
	Of(slice ids.Slice) []*Operation
	// Settled says that the log has an operation, or will never have it.
	Settled(slice ids.Slice, client, number uint64)
}

// Options are what a Loop works with.
type Options struct {
	Self    ids.Node
	Core    *replica.Node
	Clock   boottime.Func
	HLC     *hlc.Clock
	Disk    Disk
	Meta    *meta.DB
	Chunks  Chunks
	Leases  Leases
	Network Network
	Helpers Helpers
	// Rows hears of rows that peers and swaps brought.
	Rows func(geoconfig.SliceRow)
	// Pending are the operations that this node keeps apart from the log; nil: none.
	Pending Pending
	// Committed hears of the chunks, addresses end to end, that an operation
	// named which is applied now. It must not block. Nil: nobody does.
	Committed func(addresses []byte)
	// Dropped hears of chunks that a slice needs no more. It must not block. Nil: nobody
	// does.
	Dropped func(chunk.Address)
	// Full reports whether a slice takes no more content.
	Full func(ids.Slice) bool
	// Fatal ends the node: what it promised it can no longer keep.
	Fatal func(error)
	// TickEvery is how often the core is told the time.
	TickEvery time.Duration
	// QueueLimit and QueueBytes bound the client operations under way at once;
	// one more is answered Overloaded. 0: 8192 and 64 MiB.
	QueueLimit int
	QueueBytes int
	// MaxUserHolds bounds the holds of one user; beyond it, operations that take
	// another are answered Overloaded. 0: nothing does.
	MaxUserHolds int
	Logger       *slog.Logger
}

// Disk is the journal, as the loop uses it.
type Disk interface {
	// Append journals records in order, together; done is called by another
	// goroutine when they are on disk. It must not block.
	Append(records []replica.Record, done func(error)) error
	// Room reports whether so many more bytes can be written now: nil,
	// Overloaded or NoSpace.
	Room(bytes int) error
}
