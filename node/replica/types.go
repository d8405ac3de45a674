package replica

import (
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica/internal/bug"
)

// Time is a reading of this node's boottime clock; it means nothing elsewhere.
type Time = time.Duration

// Position numbers the records that a Node hands out, over all slices, from 1
// in each life of the process.
type Position uint64

// Config is fixed for the life of a Node. Zero limits get their defaults.
type Config struct {
	Self        ids.Node
	Incarnation ids.Incarnation // of the data directory
	// Boot tells apart the lives of the process: never the same twice for one
	// node; random or counted.
	Boot  uint64
	Start Time // when the process started
	Lease time.Duration
	// Wait is how long a standby hears nothing before it takes over, and how
	// long a node keeps quiet after it started: 1.2 x Lease.
	Wait        time.Duration
	BeaconEvery time.Duration
	// TickEvery is how often the driver means to call Tick; a gap of half a
	// lease counts as having been suspended.
	TickEvery   time.Duration
	ResendAfter time.Duration // unanswered messages are sent again after this
	// StuckAfter is how long a record may stay unpersisted before the node
	// stops beaconing and answering.
	StuckAfter time.Duration
	// SwapRetry is how long after an undecided or refused swap it is tried again.
	SwapRetry time.Duration
	Limits    Limits
	// Bugs is empty, except in tests of the simulator.
	Bugs bug.Set
}

// Limits bound what a Node keeps in memory.
type Limits struct {
	// KeepBytes bounds the entries kept for resending, over all slices; older
	// ones are read back from the journal (Outputs.Reads). It also bounds the
	// entries of a slice that wait for its state to be transferred.
	KeepBytes int
	// UncommittedBytes and UncommittedEntries bound what an active has proposed
	// and not yet committed, per slice; Propose answers Overloaded beyond.
	UncommittedBytes   int
	UncommittedEntries int
	// FlightBytes bounds what is sent to one member of one slice and not yet
	// acknowledged; more waits.
	FlightBytes int
	// MessageBytes is where an append is cut into several messages.
	MessageBytes int
	// Clients bounds the registrations of a slice. A new one takes the place of
	// the one least recently used, if that was not for ClientIdle of journal
	// time; otherwise it is refused with Overloaded. Like all limits below, it
	// must be the same at all members: what they do with it is state.
	Clients    int
	ClientIdle time.Duration
	// Results is how many results are remembered per client, and ClientBytes
	// what they cost until more is refused with Overloaded, except for the
	// client's lowest outstanding operation, which frees room.
	Results     int
	ClientBytes int
	// ResultBytes is what the results of a slice's clients cost together; beyond,
	// those of the clients least recently used are forgotten.
	ResultBytes int
	// ClientLife is how long a registration lasts after its last operation, in
	// journal time.
	ClientLife time.Duration
}

func (c Config) withDefaults() Config {
	d := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	i := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	d(&c.Lease, 3*time.Second)
	d(&c.Wait, c.Lease*6/5)
	d(&c.BeaconEvery, c.Lease/6)
	d(&c.TickEvery, c.Lease/60)
	d(&c.ResendAfter, c.Lease/6)
	d(&c.StuckAfter, c.Lease)
	d(&c.SwapRetry, c.Lease/6)
	l := &c.Limits
	i(&l.KeepBytes, 64<<20)
	i(&l.UncommittedBytes, 32<<20)
	i(&l.UncommittedEntries, 8192)
	i(&l.FlightBytes, 16<<20)
	i(&l.MessageBytes, 256<<10)
	i(&l.Clients, 65536)
	d(&l.ClientIdle, 10*time.Minute)
	i(&l.Results, 1024)
	i(&l.ClientBytes, 4<<20)
	i(&l.ResultBytes, 64<<20)
	d(&l.ClientLife, 24*time.Hour)
	return c
}

// Proposal asks the active of a slice for one more entry.
type Proposal struct {
	// Token comes back in the Reply.
	Token uint64
	// Entry to order. Serial, if not 0, must be what Next gave, since the data
	// was made for it; Time must be above that of every earlier entry. Epoch
	// is set by the core. Level 0 asks for all standbys.
	Entry Entry
	// Early asks for an Early before the reply, once everything up to After is
	// committed: what the entry's data was made from.
	Early bool
	After ids.Serial
}

// Reply answers a Proposal. With Kind None, Entry is committed and Result is
// what the client gets: of the first run, where the operation was run before.
// TimedOut means unknown: the entry may or may not be committed later; the
// same client and number may be proposed again, here or at the next active.
// NotActive, WrongEpoch, Overloaded, Again and Invalid mean that nothing was
// proposed; Expired that the client is not registered or the number is below
// its lowest outstanding one, so that it must never run.
type Reply struct {
	Slice  ids.Slice
	Token  uint64
	Kind   fault.Kind
	Serial ids.Serial
	Epoch  ids.Epoch
	Time   hlc.Time
	Result []byte
}

// Known is what the results' table says of an operation.
type Known uint8

// What Lookup answers.
const (
	Unseen       Known = iota // not seen: evaluate and propose it
	Done                      // committed: the result is returned
	Pending                   // proposed here, not yet committed: propose again to wait for it
	Unregistered              // the client must register anew; never run the operation
	Forgotten                 // below the client's lowest outstanding number; never run it
)

// Outcome is how a swap ended.
type Outcome uint8

// The outcomes of a swap.
const (
	// Won: the row is in geo-config.
	Won Outcome = iota
	// Lost: another row was there; Row carries it.
	Lost
	// Void: not applied, and never will be (Settle said so, or it was not sent).
	Void
	// Unknown: the swap will be asked for again, with the same content.
	Unknown
)

// Swap asks for a compare-and-swap of a slice row: From is the epoch it must
// have, After the new row. A Swap with equal From and After is the same swap
// asked again: use a key made of slice, From and Attempt.
type Swap struct {
	Slice ids.Slice
	From  ids.Epoch
	After geoconfig.SliceRow
	// Attempt tells apart swaps that this node proposed at the same epoch.
	Attempt uint64
	// Why is for the log and the action of the audit record: slice.takeover, member.failed, ...
	Why string
}

// Change is what maintenance asks an active to change in its row.
type Change struct {
	// From is the epoch of the row that the change was made for. An active whose
	// row is another by now refuses it: a member that had failed may be back.
	From   ids.Epoch
	Add    []geoconfig.Member // joins as M (state is set); one that is F joins anew
	Remove []ids.Node         // leaves; a standby only where enough copies stay
	Close  bool               // no new objects
	Policy *geoconfig.Policy  // replaces the policy
}

// Restored is what a driver found on disk about one slice.
type Restored struct {
	// Row is the newest row that was persisted; a tombstone has no such member
	// as this node.
	Row geoconfig.SliceRow
	// Intent is set if the last intent record (RecordIntent) is of Row's epoch.
	Intent bool
	// Base is the serial that the entries follow, with its epoch and time: of
	// the oldest entry that the journal has (which need not be in Entries), or
	// of the state in the store if the journal has nothing older; 0 from the
	// slice's beginning.
	Base      ids.Serial
	BaseEpoch ids.Epoch
	BaseTime  hlc.Time
	// Entries follow Base without a gap, as the journal's records replay: an
	// entry takes the place of all earlier ones of equal or higher serials.
	// Those above Applied must be there, those below may.
	Entries []*Entry
	// Applied is the serial that the store's state has; it was committed.
	Applied ids.Serial
	// Clients is a table as Snapshot.Clients gave it at ClientsAt (nil: empty
	// at 0); Entries must reach back to ClientsAt.
	Clients   []byte
	ClientsAt ids.Serial
	// Unheld are the applied entries whose chunks were not all on this node's
	// disk, ascending; the oldest may be older than Base. None of an incomplete
	// state.
	Unheld []EntryID
	// Incomplete: a state transfer had begun (RecordReset) and not ended.
	Incomplete bool
}

// EntryID names an entry of a slice.
type EntryID struct {
	Serial ids.Serial
	Epoch  ids.Epoch
}

// Snapshot describes a slice's committed state at one serial: what a driver
// that serves a state transfer sends along with the store's content, and what
// it saves at a checkpoint.
type Snapshot struct {
	Serial  ids.Serial
	Epoch   ids.Epoch // of the entry with that serial
	Time    hlc.Time
	Clients []byte
}
