package status

import (
	"time"

	"cartwheel.dev/geo-config/ids"
)

// Scrub is how far a node is with reading all that it stores, and what it found.
type Scrub struct {
	// PeriodNS is within what time the node reads everything; 0: only where an
	// administrator orders it.
	PeriodNS time.Duration `json:"period_ns"`
	// Round numbers the round under way, or the last one. Running says that it is under
	// way, and Ordered that somebody ordered it.
	Round   uint64 `json:"round"`
	Running bool   `json:"running"`
	Ordered bool   `json:"ordered"`
	// Phase is what the round reads now: chunks, records or states.
	Phase string `json:"phase,omitempty"`
	// DoneShare is the part of the chunks that the round has read, 0 to 1.
	DoneShare float64 `json:"done_share"`
	// BeganAtNS is when the round began, in Unix time. 0: there was none.
	BeganAtNS int64 `json:"began_at_ns"`
	// EndedRound is the last round that was whole, EndedAtNS when it ended in Unix time,
	// and TookNS how long it took. 0: none was.
	EndedRound uint64        `json:"ended_round"`
	EndedAtNS  int64         `json:"ended_at_ns"`
	TookNS     time.Duration `json:"took_ns"`
	// Now counts what this round found, Last what the last whole one did, and Total what
	// all did since the node has its disk.
	Now   ScrubCounts `json:"now"`
	Last  ScrubCounts `json:"last"`
	Total ScrubCounts `json:"total"`
	// LostChunks counts the chunks that records name and no member of their slices has
	// given. Lost lists the first ones, where the caller may see them.
	LostChunks int         `json:"lost_chunks"`
	Lost       []LostChunk `json:"lost,omitempty"`
	// Different lists the slices whose state differs here from the active's.
	Different []DifferentState `json:"different,omitempty"`
}

// ScrubCounts count what a scrub read and found.
type ScrubCounts struct {
	ReadBytes uint64 `json:"read_bytes"`
	// Chunks were proven by their addresses. Records of references were compared with
	// what is here, and States of slices with those of their actives.
	Chunks  uint64 `json:"chunks"`
	Records uint64 `json:"records"`
	States  uint64 `json:"states"`
	// Damaged chunks were not what their address says, or could not be read. Missing ones
	// were named by a record and not here. Repaired ones were written anew. Unneeded ones
	// were damaged, and no record names them.
	Damaged  uint64 `json:"damaged"`
	Missing  uint64 `json:"missing"`
	Repaired uint64 `json:"repaired"`
	Unneeded uint64 `json:"unneeded"`
	// ReadErrors counts the reads that the disk refused twice.
	ReadErrors uint64 `json:"read_errors"`
	// Different counts the states that differed at an equal serial.
	Different uint64 `json:"different"`
}

// LostChunk is a chunk that no member of the slices that name it has given.
type LostChunk struct {
	Chunk   string      `json:"chunk"`
	Slices  []ids.Slice `json:"slices"`
	SinceNS int64       `json:"since_ns"` // Unix time
	// Objects are those of the first slice whose current content has the chunk, as far as
	// they are known: older versions and deleted files name chunks too.
	Objects []ids.Object `json:"objects,omitempty"`
	// Unasked says that a member did not answer, which may have it.
	Unasked bool `json:"unasked,omitempty"`
}

// DifferentState is a slice's state that differed from another member's at one serial.
type DifferentState struct {
	Slice  ids.Slice  `json:"slice"`
	Serial ids.Serial `json:"serial"`
	// With is the member whose state it was compared with, at AtNS in Unix time.
	With ids.Node `json:"with"`
	AtNS int64    `json:"at_ns"`
	// ActiveDiffers says that another standby has the state that this node has, so that
	// the active's is the odd one.
	ActiveDiffers bool `json:"active_differs,omitempty"`
}
