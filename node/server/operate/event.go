package operate

import (
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/tree"
)

// eventKind says what happened; which fields of the event count depends on it.
type eventKind uint8

const (
	eventOperation eventKind = iota // op: evaluate and propose it
	eventMessages                   // from, messages
	eventPersisted                  // position
	eventHeld                       // slice, serial, epoch
	eventRows                       // rows
	eventCall                       // call: runs on the loop
	eventFreed                      // op, holders: no other session holds what it changes
)

// event is one input of the loop.
type event struct {
	kind     eventKind
	op       *Operation
	from     ids.Node
	messages []*replica.Message
	position replica.Position
	slice    ids.Slice
	serial   ids.Serial
	epoch    ids.Epoch
	rows     []geoconfig.SliceRow
	call     func()
	holders  []tree.Holder
	bytes    int // of the entries in messages
}

// Operation is a client's operation on its way through the loop. The caller
// fills the first part and leaves it alone until Done has been called.
type Operation struct {
	Slice  ids.Slice
	Epoch  ids.Epoch // of the row that the caller went by; 0: any
	Client uint64    // 0: the node itself
	Number uint64
	Lowest uint64
	Unsent bool // no attempt so far can have been run, and nothing below is awaited
	// Age is how long ago the first attempt was sent; 0: not known.
	Age     time.Duration
	Session uint64 // whose own leases are not revoked
	Level   uint32 // as OperateRequest.sync_level
	Op      *pb.Operation
	Body    []byte
	// Internal operations are a node's: Client and Number, if set, are those
	// of the client operation that this step decides.
	Internal bool
	// Principal acts; Trusted as in tree.Context.
	Principal tree.Principal
	Trusted   bool
	OnlyMade  bool   // as in tree.Context
	Side      bool   // as in tree.Context
	User      string // whose holds are bounded; empty: a node's
	// Admit is asked when the operation is about to be ordered, after it has
	// waited for what was in its way; an error ends it. It must not block. Nil
	// admits.
	Admit func(*Operation) error
	// Held: other members may keep it apart from the log. A refusal is then put into
	// the log, so that none of them orders it later.
	Held bool
	// Kept: a member kept it, however long. Its client is registered, or it is not done.
	Kept bool
	// Early is called before Done, on the loop's goroutine, once the operation keeps
	// its place, though it is not committed; or it is not called. Nil: the caller
	// waits for Done. The Answer has no result. It must not block.
	Early func(*Operation, Answer)
	// Done is called once, on the loop's goroutine: it must not block.
	Done func(*Operation, Answer)

	underway
}

// underway is what the loop knows of an operation that it has taken up.
type underway struct {
	holders []tree.Holder // clients that have what it unlinks open, from revocations
	born    []*pb.Grant   // leases on directories that it makes
	change  uint64        // of the Leases, while one is under way; 0: none
	freed   bool          // the revocations are answered: the leases are marked
	touched []tree.Touch  // what change marks
	outcome tree.Outcome  // while proposed
	serial  ids.Serial
	blocked tree.Intent // the intent that it waits for
	since   replica.Time
	// admitted: counted until it is finished.
	admitted bool
	cost     Cost
	early    bool // Early was called, and the names do not show it yet
	// completes: it is one of complete; passed: only its client waits for it any more.
	completes, passed bool
}

// Answer is how an operation ended. Exactly one of Result, Refused and Err is
// set, or Across.
type Answer struct {
	Result *pb.Result
	// Encoded is the result of an earlier run, where it was found.
	Encoded []byte
	Serial  ids.Serial
	Epoch   ids.Epoch
	Time    uint64 // hybrid
	// Row is set in a refusal: this node does not act for the slice.
	Refused *Refusal
	// Across: the operation needs several slices; nothing was done.
	Across bool
	// NotEmpty is the directory that the operation would have removed or replaced.
	// Nothing was done.
	NotEmpty ids.Object
	Err      error
	Cost     Cost
	// Grants are leases that were given with Result, on directories that it made.
	Grants []*pb.Grant
}

// Cost is what an operation waited for, for traces.
type Cost struct {
	Commits  int    // entries that had to be committed for it, one after the other
	Bytes    int    // of these
	Level    uint32 // how many members had to have them; 0: all
	Asked    bool   // sessions at this site were asked to give leases up
	AskedFar bool   // and at others
	Unlisted bool   // it was an intent: those who ran it counted apart
	WAN      uint32 // what an intent came to
	Local    uint32
	Far      uint64 // bytes to other sites
}

// Refusal says why this node does not act for a slice now.
type Refusal struct {
	Kind uint32
	Row  *geoconfig.SliceRow // nil where none is known
	Why  string
}
