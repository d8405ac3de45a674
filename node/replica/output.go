package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// RecordKind tells journal records apart. The numbers are stored.
type RecordKind uint8

// The kinds of journal records.
const (
	// RecordEntry holds Entry: it takes the place of every earlier record of
	// the slice with an equal or higher serial.
	RecordEntry RecordKind = 1
	// RecordRow holds Row, the newest row seen; a row that does not list this
	// node is a tombstone, to be kept for good.
	RecordRow RecordKind = 2
	// RecordIntent says that a swap that may make other members normal is about
	// to be sent, at epoch Row.Epoch.
	RecordIntent RecordKind = 3
	// RecordReset says that the slice's entries and state so far are void: its
	// log now follows Base (with BaseEpoch), its state is being transferred.
	RecordReset RecordKind = 4
	// RecordComplete says that the state at Base has arrived.
	RecordComplete RecordKind = 5
)

// Record is one thing to journal. Encode it with AppendRecord.
type Record struct {
	Position  Position
	Kind      RecordKind
	Slice     ids.Slice
	Entry     *Entry
	Row       *geoconfig.SliceRow
	Base      ids.Serial
	BaseEpoch ids.Epoch
	BaseTime  hlc.Time
}

// Outgoing is a message for a peer. Control messages (beacons and their
// answers) must not queue behind anything else.
type Outgoing struct {
	To      ids.Node
	Message *Message
}

// RoleKind is what a node is in a slice.
type RoleKind uint8

// The roles.
const (
	RoleNone     RoleKind = iota // removed, failed, or not to be trusted
	RoleStandby                  // holds every committed operation
	RoleJunior                   // catching up
	RoleActive                   // named by the row, not yet serving: recovering or waiting
	RoleLeading                  // serving, while the lease holds
	RoleYielding                 // handing over: revoke object leases, then call Yield
)

func (r RoleKind) String() string {
	return [...]string{"none", "standby", "junior", "active", "leading", "yielding"}[r]
}

// Role tells that this node's part in a slice changed, or its row. When
// a role other than RoleLeading follows RoleLeading or RoleYielding, the
// server voids the slice's object leases and locks and clears its overlay;
// all proposals not yet answered have got their replies in the same Outputs.
type Role struct {
	Slice ids.Slice
	Kind  RoleKind
	Row   *geoconfig.SliceRow
	// Leases and Wait come with RoleLeading after a hand-over: Leases is what
	// the old active gave to Yield (its times left count from LeasesAge ago).
	// Wait, where not 0, is how long no leased object may be changed because
	// the old active's list did not arrive.
	Leases    []byte
	LeasesAge Time
	Wait      Time
	// Removed: the row does not list this node any more; its data may go, the
	// row itself must be kept.
	Removed bool
}

// Apply hands over committed entries of one slice, in order, each once. Serial
// is the last one's.
type Apply struct {
	Slice   ids.Slice
	Entries []*Entry
}

// Read asks for entries From..To of a slice out of the journal; fewer will do,
// as long as they begin with From.
type Read struct {
	Slice    ids.Slice
	From, To ids.Serial
	MaxBytes int
}

// Transfer asks for a copy of the slice's state from one of Sources, the best
// first. It is asked again after a failure.
type Transfer struct {
	Slice   ids.Slice
	Row     *geoconfig.SliceRow
	Sources []ids.Node
	// Diverged: what is here must be thrown away, it holds operations that
	// were never committed.
	Diverged bool
}

// Early tells a proposer that its entry is on this disk and keeps its place, and is
// not committed yet. Its Reply comes later all the same. The proposer may count the
// operation as done where every other normal member of the epoch's row keeps the
// operation apart from the log, and orders it if it takes over.
type Early struct {
	Slice  ids.Slice
	Token  uint64
	Serial ids.Serial
	Epoch  ids.Epoch
	Time   hlc.Time
}

// Event is for the log: something a person may want to know.
type Event struct {
	Slice ids.Slice
	What  string
	Node  ids.Node
	Epoch ids.Epoch
}

// Lease tells until when this node may act for a slice.
type Lease struct {
	Slice ids.Slice
	Epoch ids.Epoch
	Until Time
}

// Outputs is what the inputs since the last Flush led to. Valid until the next.
type Outputs struct {
	Records   []Record
	Messages  []Outgoing
	Applied   []Apply
	Replies   []Reply
	Early     []Early
	Swaps     []Swap
	Reads     []Read
	Transfers []Transfer
	Roles     []Role
	Leases    []Lease
	Events    []Event

	slab    []Message // what Messages point into
	entries []*Entry  // what Entries of messages and applies are cut from
}

func (o *Outputs) reset() {
	clear(o.slab)
	clear(o.entries)
	o.slab, o.entries = o.slab[:0], o.entries[:0]
	clear(o.Records)
	clear(o.Messages)
	clear(o.Applied)
	clear(o.Replies)
	o.Early = o.Early[:0]
	clear(o.Swaps)
	clear(o.Transfers)
	clear(o.Roles)
	o.Records, o.Messages, o.Applied = o.Records[:0], o.Messages[:0], o.Applied[:0]
	o.Replies, o.Swaps, o.Reads = o.Replies[:0], o.Swaps[:0], o.Reads[:0]
	o.Transfers, o.Roles = o.Transfers[:0], o.Roles[:0]
	o.Leases, o.Events = o.Leases[:0], o.Events[:0]
}

// Empty reports whether there is nothing to do.
func (o *Outputs) Empty() bool {
	return len(o.Records)+len(o.Messages)+len(o.Applied)+len(o.Replies)+len(o.Early)+len(o.Swaps)+len(o.Reads)+
		len(o.Transfers)+len(o.Roles)+len(o.Leases)+len(o.Events) == 0
}

// send adds a message and returns it to be filled in.
func (o *Outputs) send(to ids.Node, kind MessageKind) *Message {
	o.slab = append(o.slab, Message{Kind: kind})
	m := &o.slab[len(o.slab)-1]
	o.Messages = append(o.Messages, Outgoing{To: to, Message: m})
	return m
}
