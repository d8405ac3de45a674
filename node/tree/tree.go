// Package tree is the file system of one slice as pure functions: it evaluates
// one operation over a View of the slice's state, with the semantics of POSIX,
// and returns the mutations that make it true, the result for the client, and
// what must be waited for first. It orders nothing, sends nothing, keeps no
// time and does no I/O but through the View; the replica core orders what it
// returns, the store applies it. An operation that needs several slices is run
// by a Coordinator, pure as well, as an intent (docs/design.md,
// 4.10). Everything here may be used by many goroutines at once as long as
// each uses values of its own; an Overlay belongs to one goroutine. What is
// stored is described byte by byte in docs/formats/tree.md.
package tree

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
)

// View is the state of one slice at one moment. Values must not be modified;
// fn must not keep what it is given.
type View interface {
	// Get returns the value of a key, valid until the View changes.
	Get(key []byte) (value []byte, ok bool, err error)
	// Scan calls fn for the keys in [from, to) in order until it returns false.
	Scan(from, to []byte, fn func(key, value []byte) bool) error
}

// Mutation sets a key, or deletes it where Value is nil. Time is the time of
// the version to write where it is not the entry's own (an operation over
// several slices has one time in all of them); 0 means the entry's.
type Mutation struct {
	Key, Value []byte
	Time       hlc.Time
}

// Nodes finds manifest nodes.
type Nodes = chunk.Reader

// Chunk is new content that travels inside the entry: a small body or a
// manifest node.
type Chunk struct {
	Address chunk.Address
	Data    []byte
}

// Principal is who acts, as the server established it.
type Principal struct {
	UID, GID uint32
	Groups   []uint32
}

// Context is what an evaluation is told besides the state.
type Context struct {
	Slice  ids.Slice
	Serial ids.Serial // that the operation will have
	Time   hlc.Time   // of the operation; above all earlier ones of the slice, and not below a Step's
	Node   ids.Node   // whose range new object IDs come from: the active
	Client uint64     // 0: the node itself
	Number uint64     // of the client's operation, remembered in intents
	Principal
	// Trusted hosts' kernels have checked open files; a commit of theirs is
	// not checked again.
	Trusted bool
	// Holders are clients that said, when they were revoked, that they have the
	// objects open that this operation takes the last name from.
	Holders []uint64
	// HeldBy are Holders of one object each, where an operation takes the last
	// name from several.
	HeldBy []Holder
	// OnlyMade says that the caller may name an object that a batch makes because
	// of that alone: where the batch did not make it, what names it is Stale.
	OnlyMade bool
	// Closed slices take no new objects.
	Closed bool
	// Side says that objects are made with numbers that a side log chose.
	Side bool
	// SideLost says that another content than a side log's stayed in a file.
	SideLost bool
}

// Holder is a client that has an object open.
type Holder struct {
	Object ids.Object
	Client uint64
}

// Outcome is what an evaluation proposes. Exactly one of these is the case:
// Blocked is set (wait for that intent, evaluate again), Across is set (run a
// Coordinator), Err is set (the state is broken or could not be read: nothing
// is known), or Result is set. A result of a failure has no mutations.
type Outcome struct {
	Result    *pb.Result
	Mutations []Mutation
	// Inline are the chunks that the entry itself carries.
	Inline []Chunk
	// Needs are addresses of chunks, end to end, that must be on a member's
	// disk before it acknowledges.
	Needs []byte
	// Touched are the leases of other sessions to revoke before it is proposed.
	Touched []Touch
	// Alone are the directories that a batch makes for a client that can use a lease
	// of kind ALONE on them. Nobody can know of them before it is proposed.
	Alone []ids.Object
	// Beside is how many bytes the results of a batch take beside the mutations.
	Beside int
	// NotEmpty is the directory because of which Result is that refusal; 0: there is
	// none. Who has it exclusively may have removed its names.
	NotEmpty ids.Object
	// Blocked is the intent whose lock the operation met.
	Blocked Intent
	Across  bool
	Err     error
}

// Done reports whether the outcome is one to propose: a success that changes
// something. Failures and successes that change nothing are only answered.
func (o *Outcome) Done() bool { return o.Result != nil && o.Result.Kind == 0 && len(o.Mutations) > 0 }

// Touch is something that leases cover and an operation changes: the leases of
// other sessions on it are revoked first.
//
// A NAMES lease of a directory covers its names, its own attributes, and the
// attributes of those children that are not directories and whose Attr.parent
// is that directory. A FILE lease covers one object's attributes, extended
// attributes and content.
type Touch struct {
	Object ids.Object
	What   pb.Grant_What
	// Name is the one name concerned; empty where it is about the directory
	// itself or several.
	Name []byte
	// Unlinked says that the object loses its last name: who has it open shall
	// say so.
	Unlinked bool
}

// Intent names one operation over several slices: the coordinator's slice in
// the high bits, the serial of its first step below.
type Intent uint64

// NewIntent joins a slice and a serial.
func NewIntent(s ids.Slice, serial ids.Serial) Intent {
	return Intent(ids.NewObject(s, uint64(serial)))
}

// Slice is the coordinator's.
func (i Intent) Slice() ids.Slice { return ids.Object(i).Slice() }

// The limits of names, targets and links.
const (
	MaxName   = 255
	MaxTarget = 4095
	// MaxLinks bounds the names of an object, and 2 + subdirectories of a
	// directory.
	MaxLinks = 1 << 20
	// MaxInline is the size up to which a file lies beside its record.
	MaxInline = 4096
	// MaxXattr bounds one extended attribute's value.
	MaxXattr = 64 << 10
	// MaxXattrs bounds the extended attributes of one object, names and values.
	MaxXattrs = 256 << 10
	// RangeSize is how many object numbers a member takes at once.
	RangeSize = 1 << 16
)
