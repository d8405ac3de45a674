package replica

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
)

// Node is this node's part in all its replica groups. See the package
// documentation for how to drive it.
type Node struct {
	c   Config
	now Time
	out Outputs
}

// New makes a Node without slices.
func New(c Config) *Node { return &Node{c: c.withDefaults()} }

// Restore brings back a slice that was found on disk; before the first input.
func (n *Node) Restore(now Time, r Restored) error { return nil }

// Tick makes time pass.
func (n *Node) Tick(now Time) {}

// Receive takes a message from a peer that the connection has authenticated.
// The message belongs to the core from now on.
func (n *Node) Receive(now Time, from geoconfig.NodeID, m *Message) {}

// Persisted says that all records up to a position are on disk.
func (n *Node) Persisted(now Time, upTo Position) {}

// Held says that all chunks of an entry are on this node's disk.
func (n *Node) Held(now Time, s geoconfig.SliceID, serial geoconfig.Serial, epoch geoconfig.Epoch) {}

// Propose asks for an entry. The reply comes in this or a later Outputs.
func (n *Node) Propose(now Time, p Proposal) {}

// Next returns the serial that the next proposal of a slice gets, and the time
// that its own must be above.
func (n *Node) Next(s geoconfig.SliceID) (geoconfig.Serial, hlc.Time) { return 0, 0 }

// Lookup says what is known of an operation, before it is evaluated.
func (n *Node) Lookup(s geoconfig.SliceID, client, number uint64) (Known, Reply) {
	return Unseen, Reply{}
}

// Learn brings a slice row from geo-config.
func (n *Node) Learn(now Time, row *geoconfig.SliceRow) {}

// Swapped tells how a Swap ended; row is what is in geo-config, for Won and Lost.
func (n *Node) Swapped(now Time, s Swap, o Outcome, row *geoconfig.SliceRow) {}

// PeerUp and PeerDown are hints that a connection was made or broke.
func (n *Node) PeerUp(now Time, peer geoconfig.NodeID) {}

// PeerDown tells that a connection broke: what was under way may be lost.
func (n *Node) PeerDown(now Time, peer geoconfig.NodeID) {}

// Stuck says whether this node makes no progress; it then loses its slices.
func (n *Node) Stuck(now Time, stuck bool) {}

// SliceStuck says the same of one slice.
func (n *Node) SliceStuck(now Time, s geoconfig.SliceID, stuck bool) {}

// HandOver begins a planned hand-over to a standby: no more is proposed, what
// was proposed drains, then RoleYielding asks the server to revoke the object
// leases and to call Yield.
func (n *Node) HandOver(now Time, s geoconfig.SliceID, to geoconfig.NodeID) fault.Kind {
	return fault.None
}

// Yield goes on with a hand-over; leases are those not yet answered, for the
// successor, in the server's own encoding.
func (n *Node) Yield(now Time, s geoconfig.SliceID, leases []byte) {}

// Reconfigure asks the active to change the row. None means that a swap is
// under way; Again that another one is, or that it cannot be now.
func (n *Node) Reconfigure(now Time, s geoconfig.SliceID, c Change) fault.Kind { return fault.None }

// ReadDone answers a Read: entries in order from Read.From on; none means that
// the journal does not have them any more.
func (n *Node) ReadDone(now Time, r Read, entries []*Entry) {}

// TransferBegun says that a source gives the state as of a serial; entries
// after it are wanted from now on. base.Clients is not looked at.
func (n *Node) TransferBegun(now Time, s geoconfig.SliceID, base Snapshot) {}

// TransferDone says that the state as of TransferBegun's serial is on disk,
// chunks and all.
func (n *Node) TransferDone(now Time, s geoconfig.SliceID, base Snapshot) {}

// TransferFailed says that the transfer ended without; it is asked for again.
func (n *Node) TransferFailed(now Time, s geoconfig.SliceID) {}

// Flush returns what is to be done for the inputs so far.
func (n *Node) Flush(now Time) *Outputs { return &n.out }

// Until returns until when this node may acknowledge, read and grant sessions
// for a slice; not at all if that is not after now.
func (n *Node) Until(s geoconfig.SliceID) Time { return 0 }

// Snapshot describes a slice's state at the last serial in Outputs.Applied.
func (n *Node) Snapshot(s geoconfig.SliceID) (Snapshot, bool) { return Snapshot{}, false }

// Status tells where a slice stands.
func (n *Node) Status(s geoconfig.SliceID) (Status, bool) { return Status{}, false }

// Status is a slice's state for reports.
type Status struct {
	Row      *geoconfig.SliceRow
	Role     RoleKind
	Last     geoconfig.Serial
	Commit   geoconfig.Serial
	Until    Time
	Swapping bool
	Members  []MemberStatus // as the active sees them; none elsewhere
}

// MemberStatus is what the active knows of a member.
type MemberStatus struct {
	Node  geoconfig.NodeID
	State geoconfig.MemberState
	Match geoconfig.Serial // on its disk and equal to the active's
	Heard Time             // when the last beacon that it answered was sent
}
