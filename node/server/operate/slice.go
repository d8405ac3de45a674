package operate

import (
	"sync/atomic"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/tree"
)

// slice is what the loop keeps of one slice.
type slice struct {
	id      ids.Slice
	role    replica.RoleKind
	row     *geoconfig.SliceRow
	over    *overlay
	view    view
	pub     *Published
	applied ids.Serial
	taken   ids.Serial // applied, or in the batch that is being made
	// proposed are the operations under way here, by serial.
	proposed map[ids.Serial]*Operation
	// unheld are the applied entries whose chunks are not all here; there is a
	// note of each in the metadata.
	unheld map[replica.EntryID]struct{}
	// incoming is the state on its way in from another member; nil: none is.
	incoming *incoming
	// answers wait for everything up to a serial to be applied.
	answers []lateAnswer
	// parked operations wait for an intent, or for the time of notBefore.
	parked []*Operation
	// aborted are intents of other slices that were aborted here, the newest last.
	aborted []tree.Intent
	// decisive is the serial of the last proposal that isDecisive.
	decisive ids.Serial
	// completing counts the operations of complete that are not applied: while there
	// are any, nobody else is served. The log had no room for those in again.
	completing int
	again      []*Operation
	// passed counts, by client, those that others need not wait for any more. That
	// client waits still: what it does next would make the log forget their numbers.
	passed map[uint64]int
	since  uint64 // see Published
	ready  bool   // see prepared
	ahead  bool   // its times were found to be ahead of this node's clock
	// notBefore is until when no leased object may be changed (after a
	// hand-over whose list of leases did not arrive).
	notBefore replica.Time
}

// lateAnswer changed nothing, but was read from what is not committed yet.
type lateAnswer struct {
	after ids.Serial
	op    *Operation
	a     Answer
}

// Published is what other goroutines may know of a slice at this node.
type Published struct {
	Slice ids.Slice
	Role  replica.RoleKind
	Row   *geoconfig.SliceRow // must not be changed; nil: unknown
	until atomic.Int64        // boottime; 0: it must not act, or has nothing yet
	// Since is the last serial that this node did not lead itself; valid while
	// it leads.
	Since uint64
	// Applied is the serial of the last entry in the metadata.
	Applied atomic.Uint64
	// AppliedTime is at most the hybrid time of that entry; 0: it is not known.
	AppliedTime atomic.Uint64
}

// NewPublished makes what others see of a slice in which the node has a role, and
// for which it may act until a time where it leads.
func NewPublished(id ids.Slice, role replica.RoleKind, row *geoconfig.SliceRow, until replica.Time) *Published {
	p := &Published{Slice: id, Role: role, Row: row}
	p.until.Store(int64(until))
	return p
}

// Serves reports whether the node may act for the slice at that time.
func (p *Published) Serves(now replica.Time) bool {
	if plant.On(plant.LoopServesLate) {
		return p != nil && p.Role == replica.RoleLeading
	}
	return p != nil && p.Role == replica.RoleLeading && int64(now) < p.until.Load()
}

// IsCopy reports whether the node has a normal copy of the slice, and does not act for
// it.
func (p *Published) IsCopy(now replica.Time) bool {
	if p == nil || p.Row == nil || p.Serves(now) {
		return false
	}
	switch p.Role {
	case replica.RoleStandby, replica.RoleActive, replica.RoleLeading, replica.RoleYielding:
		return p.Applied.Load() > 0
	}
	return false
}

// Until returns until when it may.
func (p *Published) Until() replica.Time { return replica.Time(p.until.Load()) }
