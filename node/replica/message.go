package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// MessageKind tells messages apart. The numbers are sent: never renumber.
type MessageKind uint8

// The kinds of messages.
const (
	// Beacon asks the peer not to take over for a lease.
	Beacon MessageKind = 1
	// Answer promises that, for the beacon with the same Sequence.
	Answer MessageKind = 2
	// Append carries entries from the active, or none: those after Prev.
	// Commit is its commit serial, Serial what all normal members have.
	Append MessageKind = 3
	// Ack says that everything up to Serial is on the sender's disk and equal
	// to the active's. Prev is the sender's last entry, Commit what it knows
	// to be committed; so in a Mismatch.
	// SerialEpoch counts the state transfers that it began in this life: an Ack
	// from before the last is void.
	Ack MessageKind = 4
	// Mismatch says that the entry before an Append is not here; Serial is its
	// serial if another entry has it.
	Mismatch MessageKind = 5
	// Refuse says that the sender has another epoch; it carries its row.
	Refuse MessageKind = 6
	// Row only brings the row.
	Row MessageKind = 7
	// Query asks for the sender's last serial, before a takeover.
	Query MessageKind = 8
	// Tail answers it.
	Tail MessageKind = 9
	// Fetch asks for entries after Prev.
	Fetch MessageKind = 10
	// Fetched brings them.
	Fetched MessageKind = 11
	// Behind tells a junior that its missed operations are gone: the active's
	// begin after Serial. With FlagDiverged, that Commit is what it has wrong.
	Behind MessageKind = 12
	// Offer brings a successor the object leases that are not answered.
	Offer MessageKind = 13
	// Taken says that the offer arrived.
	Taken MessageKind = 14
)

// Message is what nodes say to each other. Which fields count depends on Kind.
type Message struct {
	Kind MessageKind
	// Boot is the sender's life; so that what one life of a node said is not
	// taken for a word of the next.
	Boot uint64
	// Beacon, Answer: To is the receiver's boot, as echoed.
	To          uint64
	Incarnation ids.Incarnation
	Sequence    uint64
	Excepted    []ids.Slice
	// All other kinds.
	Slice ids.Slice
	Epoch ids.Epoch
	Row   *geoconfig.SliceRow // of Epoch, or nil
	// Flags, see the constants.
	Flags       Flags
	Serial      ids.Serial
	SerialEpoch ids.Epoch
	Prev        ids.Serial
	PrevEpoch   ids.Epoch
	Commit      ids.Serial
	CommitEpoch ids.Epoch
	Entries     []*Entry
	Leases      []byte
	// Logged, of an Ack in a slice with a time to coherence, is up to where the entries
	// are on the sender's disk; Serial is up to where it has the chunks too. 0: Serial.
	Logged ids.Serial
	// Term, of an Append in such a slice, is the epoch in which the active became it;
	// 0: not said.
	Term ids.Epoch
}

// Flags of a message.
type Flags uint8

// The flags.
const (
	// FlagProbe asks for an Ack or Mismatch even if there is nothing new.
	FlagProbe Flags = 1 << iota
	// FlagIncomplete: the sender's state is being transferred.
	FlagIncomplete
	// FlagDiverged: the sender committed what the active does not have.
	FlagDiverged
	// FlagLeaving: the sender is about to stop, and asks to be taken out.
	FlagLeaving
	// FlagStrays: the sender lacks chunks of entries that an earlier active ordered.
	FlagStrays
)

// Control reports whether the message belongs on the connection that nothing
// queues on.
func (m *Message) Control() bool { return m.Kind == Beacon || m.Kind == Answer }
