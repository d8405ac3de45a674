package view

import (
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

// Scrub is how far a node is with reading all that it stores.
type Scrub struct {
	Node   ids.Node     `json:"node"`
	Site   ids.Site     `json:"site"`
	Report *ScrubReport `json:"report,omitempty" doc:"The node's last word; absent: it has said nothing of it."`
}

// ScrubReport is what a node says of its scrub.
type ScrubReport struct {
	AsOfAt    time.Time `json:"as_of_at"`
	PeriodMS  int64     `json:"period_ms" doc:"Within what time the node reads everything; 0: only by order."`
	Round     uint64    `json:"round" doc:"The round under way, or the last one; 0: there was none."`
	Running   bool      `json:"running"`
	Ordered   bool      `json:"ordered" doc:"Somebody ordered the round."`
	Phase     string    `json:"phase,omitempty" doc:"What it reads now: chunks, records or states."`
	DoneShare float64   `json:"done_share" doc:"The part of the chunks that it has read, 0 to 1."`
	// BeganAt is of Round; EndedAt and TookMS are of EndedRound, the last whole one.
	BeganAt    *time.Time  `json:"began_at,omitempty" doc:"When the round began; absent: there was none."`
	EndedRound uint64      `json:"ended_round" doc:"The last round that was whole; 0: none was."`
	EndedAt    *time.Time  `json:"ended_at,omitempty" doc:"When that one ended; absent: none was."`
	TookMS     int64       `json:"took_ms" doc:"How long that one took."`
	Now        ScrubCounts `json:"now" doc:"What the round found so far."`
	Last       ScrubCounts `json:"last" doc:"What the last whole round found."`
	Total      ScrubCounts `json:"total" doc:"What all rounds found since the node has its disk."`
	LostChunks int         `json:"lost_chunks" doc:"Chunks that records name and no member has given."`
	// Lost is for administrators: it tells what users store.
	Lost      []LostChunk      `json:"lost,omitempty" nullable:"false" doc:"The first lost chunks, for administrators alone. At most 100."`
	Different []DifferentState `json:"different" nullable:"false" doc:"Slices whose state differs here from that of other members."`
}

// ScrubCounts count what a scrub read and found.
type ScrubCounts struct {
	ReadBytes  uint64 `json:"read_bytes"`
	Chunks     uint64 `json:"chunks"`
	Records    uint64 `json:"records"`
	States     uint64 `json:"states" doc:"Slices compared with their actives."`
	Damaged    uint64 `json:"damaged" doc:"Chunks that were not what their address says, or could not be read."`
	Missing    uint64 `json:"missing" doc:"Chunks that a record names and that were not here."`
	Repaired   uint64 `json:"repaired" doc:"Chunks that were brought from another member."`
	Unneeded   uint64 `json:"unneeded" doc:"Damaged chunks that no record names."`
	ReadErrors uint64 `json:"read_errors" doc:"Reads that the disk refused twice."`
	Different  uint64 `json:"different" doc:"States that differed."`
}

// LostChunk is a chunk that no member of its slices has given.
type LostChunk struct {
	Chunk   string      `json:"chunk"`
	Slices  []ids.Slice `json:"slices" nullable:"false"`
	SinceAt time.Time   `json:"since_at"`
	Objects []string    `json:"objects,omitempty" nullable:"false" doc:"Objects whose current content has it, as far as they are known."`
	Unasked bool        `json:"unasked" doc:"A member that may have it does not answer."`
}

// DifferentState is a slice whose state differed from another member's.
type DifferentState struct {
	Slice         ids.Slice  `json:"slice"`
	Serial        ids.Serial `json:"serial"`
	With          ids.Node   `json:"with" doc:"The member that it was compared with."`
	FoundAt       time.Time  `json:"found_at"`
	ActiveDiffers bool       `json:"active_differs" doc:"Another standby has this state too: hand the slice over to one of them. Otherwise it is made anew by itself."`
}

// OfScrub shows what a node said of its scrub at a time. withLost is whether lost chunks are
// named.
func OfScrub(s *status.Scrub, at time.Time, withLost bool) *ScrubReport {
	out := &ScrubReport{AsOfAt: at, PeriodMS: s.PeriodNS.Milliseconds(), Round: s.Round, Running: s.Running, Ordered: s.Ordered, Phase: s.Phase, DoneShare: s.DoneShare,
		BeganAt: unixOf(s.BeganAtNS), EndedRound: s.EndedRound, EndedAt: unixOf(s.EndedAtNS), TookMS: s.TookNS.Milliseconds(),
		Now: ScrubCounts(s.Now), Last: ScrubCounts(s.Last), Total: ScrubCounts(s.Total), LostChunks: s.LostChunks, Different: []DifferentState{}}
	for _, d := range s.Different {
		out.Different = append(out.Different, DifferentState{Slice: d.Slice, Serial: d.Serial, With: d.With, FoundAt: time.Unix(0, d.AtNS).UTC(), ActiveDiffers: d.ActiveDiffers})
	}
	if !withLost {
		return out
	}
	for _, l := range s.Lost {
		lost := LostChunk{Chunk: l.Chunk, Slices: NotNil(l.Slices), SinceAt: time.Unix(0, l.SinceNS).UTC(), Unasked: l.Unasked}
		for _, o := range l.Objects {
			lost.Objects = append(lost.Objects, o.String())
		}
		out.Lost = append(out.Lost, lost)
	}
	return out
}

// unixOf is a Unix time in nanoseconds; 0: nil.
func unixOf(ns int64) *time.Time {
	if ns == 0 {
		return nil
	}
	return new(time.Unix(0, ns).UTC())
}

// ScrubBegun says that a node scrubs.
type ScrubBegun struct {
	Node  ids.Node `json:"node"`
	Round uint64   `json:"round" doc:"The round that began, or the ordered one that was under way."`
}
