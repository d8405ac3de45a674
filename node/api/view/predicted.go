package view

import (
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/whatif"
)

// WhatIf are changes to predict, made one after the other.
type WhatIf struct {
	Changes []WhatIfChange `json:"changes" minItems:"1" maxItems:"64" nullable:"false"`
	// RateBytesPerS is what one site can send to another; 0: no time is predicted.
	RateBytesPerS int64 `json:"rate_bytes_per_s,omitempty" minimum:"0"`
	FailedAfterMS int64 `json:"failed_after_ms,omitempty" minimum:"0" doc:"The nodes' failed_after; absent: 30 minutes."`
}

// WhatIfChange is one change. The values that its kind does not need are left out.
type WhatIfChange struct {
	Kind  string             `json:"kind" enum:"lose_site,lose_node,add_site,move_active,set_level,set_home,drain_node,drain_site"`
	Site  string             `json:"site,omitempty" maxLength:"63"`
	Node  string             `json:"node,omitempty" maxLength:"128"`
	Slice uint32             `json:"slice,omitempty"`
	Level int                `json:"level,omitempty"`
	Nodes int                `json:"nodes,omitempty"`
	RTTMS map[string]float64 `json:"rtt_ms,omitempty" doc:"Round trips from an added site to others."`
}

// Prediction is what the changes would do.
type Prediction struct {
	Revision  ids.Revision         `json:"revision" doc:"The configuration that it starts from."`
	Before    whatif.Summary       `json:"before"`
	During    whatif.Summary       `json:"during" doc:"Seconds after the change."`
	After     whatif.Summary       `json:"after" doc:"Once all copies are made."`
	Sites     []PredictedSite      `json:"sites" nullable:"false"`
	Slices    []whatif.SliceChange `json:"slices" nullable:"false" doc:"The slices that change; at most 1000."`
	Changed   int                  `json:"slices_changed" doc:"How many slices change in all."`
	Copies    []PredictedCopies    `json:"copies" nullable:"false"`
	CopyMS    *int64               `json:"copy_ms,omitempty" doc:"How long the copies take; absent: not known, or nothing to copy."`
	Notes     []string             `json:"notes" nullable:"false" doc:"What the prediction does not know."`
	Freshness Freshness            `json:"freshness"`
}

// PredictedSite is what users at one site get.
type PredictedSite struct {
	Name      ids.Site         `json:"name"`
	Lost      bool             `json:"lost"`
	OwnBefore PredictedLatency `json:"own_before" doc:"Of the slices whose home it is."`
	OwnAfter  PredictedLatency `json:"own_after"`
	AllBefore PredictedLatency `json:"all_before" doc:"Of the whole tree."`
	AllAfter  PredictedLatency `json:"all_after"`
}

// PredictedLatency is how long operations take in the slices that can be predicted.
type PredictedLatency struct {
	Slices        int      `json:"slices" doc:"How many could be predicted."`
	MedianReadMS  *float64 `json:"median_read_ms,omitempty" doc:"Absent, as the others: no slice could be predicted."`
	MedianWriteMS *float64 `json:"median_write_ms,omitempty"`
	WorstReadMS   *float64 `json:"worst_read_ms,omitempty"`
	WorstWriteMS  *float64 `json:"worst_write_ms,omitempty"`
}

func viewLatency(l whatif.Latencies) PredictedLatency {
	out := PredictedLatency{Slices: l.Slices}
	if l.Slices > 0 {
		out.MedianReadMS, out.MedianWriteMS = new(milliseconds(l.Median.Read)), new(milliseconds(l.Median.Write))
		out.WorstReadMS, out.WorstWriteMS = new(milliseconds(l.Worst.Read)), new(milliseconds(l.Worst.Write))
	}
	return out
}

// PredictedCopies are the bytes that go from one site to another.
type PredictedCopies struct {
	From          ids.Site `json:"from"`
	To            ids.Site `json:"to"`
	Slices        int      `json:"slices"`
	TotalBytes    int64    `json:"total_bytes" doc:"Of the slices whose size is known."`
	UnknownSlices int      `json:"unknown_slices" doc:"How many slices' size is not."`
}

// maxPredicted bounds the slices in one prediction's answer.
const maxPredicted = 1000

// OfPrediction shows an outcome.
func OfPrediction(o *whatif.Outcome, f Freshness) Prediction {
	out := Prediction{Revision: o.Revision, Before: o.Before, During: o.During, After: o.After, Sites: []PredictedSite{}, Changed: len(o.Slices),
		Slices: NotNil(o.Slices[:min(maxPredicted, len(o.Slices))]), Copies: []PredictedCopies{}, Notes: NotNil(o.Notes), Freshness: f}
	for _, x := range o.Sites {
		out.Sites = append(out.Sites, PredictedSite{x.Name, x.Lost, viewLatency(x.OwnBefore), viewLatency(x.OwnAfter), viewLatency(x.AllBefore), viewLatency(x.AllAfter)})
	}
	for _, c := range o.Copies {
		out.Copies = append(out.Copies, PredictedCopies{c.From, c.To, c.Slices, c.Bytes, c.Unknown})
	}
	if o.CopyNS > 0 {
		out.CopyMS = new(o.CopyNS.Milliseconds())
	}
	return out
}
