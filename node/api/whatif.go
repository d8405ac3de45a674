package api

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
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
	Kind  string             `json:"kind" enum:"lose_site,lose_node,add_site,move_active,set_level"`
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

const (
	// maxPredicted bounds the slices in one prediction's answer.
	maxPredicted = 1000
	// usualFailedAfter is the nodes' failed_after where a request names none.
	usualFailedAfter = 30 * time.Minute
)

// whatIf predicts from what the nodes say now. It changes nothing. One prediction
// is made at a time, since it takes a core for as long as it lasts.
func (s *Server) whatIf(ctx context.Context, in *struct{ Body WhatIf }) (*answer[Prediction], error) {
	select {
	case s.predicting <- struct{}{}:
		defer func() { <-s.predicting }()
	default:
		return nil, fault.E(fault.Overloaded, "api.whatIf", "what-if", "another prediction is being made")
	}
	state, f := s.whatIfState(ctx)
	a := whatif.Assumptions{Rate: in.Body.RateBytesPerS, FailedAfter: time.Duration(in.Body.FailedAfterMS) * time.Millisecond}
	if a.FailedAfter == 0 {
		a.FailedAfter = usualFailedAfter
	}
	var wanted []whatif.Change
	for _, c := range in.Body.Changes {
		x := whatif.Change{Kind: whatif.Kind(c.Kind), Site: ids.Site(c.Site), Node: ids.Node(c.Node), Slice: ids.Slice(c.Slice), Level: c.Level, Nodes: c.Nodes, RTT: map[ids.Site]time.Duration{}}
		for site, ms := range c.RTTMS {
			x.RTT[ids.Site(site)] = time.Duration(ms * float64(time.Millisecond))
		}
		wanted = append(wanted, x)
	}
	o, err := whatif.Predict(state, wanted, a)
	if err != nil {
		return nil, err
	}
	return &answer[Prediction]{Body: viewPrediction(&o, f)}, nil
}

// whatIfState gathers what a prediction starts from.
func (s *Server) whatIfState(ctx context.Context) (whatif.State, Freshness) {
	nodes, said := s.nodeStates(ctx)
	nets := s.nets.all(ctx, idsOf(nodes))
	state, isUp := whatif.State{}, up(said)
	for _, n := range nodes {
		net := nets[n.ID]
		if !net.at.IsZero() {
			n.Coordinate = geoconfig.Coordinate(net.value.Coordinate)
		}
		state.Nodes = append(state.Nodes, whatif.Node{Node: n, Away: !isUp(n.ID)})
		state.SinglePoint = state.SinglePoint || said[n.ID].value.GeoConfig.SinglePoint
		for _, l := range net.value.Links {
			if l.Samples > 0 {
				state.Measured = append(state.Measured, whatif.Measurement{From: n.ID, To: l.To, RTT: l.MeasuredNS})
			}
		}
	}
	sizes := s.sizes(ctx, nodes)
	state.Revision = s.index.each(func(r *geoconfig.SliceRow) {
		x := whatif.Slice{SliceRow: *r, Bytes: whatif.UnknownSize}
		if size, ok := sizes[r.ID]; ok {
			x.Bytes = size
		}
		state.Slices = append(state.Slices, x)
	})
	return state, freshOf(s, nodes, said)
}

// sizes are those of the slices whose active tells; none where there are more than
// nodes are asked for.
func (s *Server) sizes(ctx context.Context, nodes []geoconfig.Node) map[ids.Slice]int64 {
	out := map[ids.Slice]int64{}
	if s.index.len() > maxListed {
		return out
	}
	for id, list := range s.lists.all(ctx, idsOf(nodes)) {
		for _, x := range list.value {
			if isActive(&x, id) && x.StoredBytes != nil {
				out[x.ID] = *x.StoredBytes
			}
		}
	}
	return out
}

func isActive(x *status.Slice, id ids.Node) bool { return x.SliceRow.Active == id }

func viewPrediction(o *whatif.Outcome, f Freshness) Prediction {
	out := Prediction{Revision: o.Revision, Before: o.Before, During: o.During, After: o.After, Sites: []PredictedSite{}, Changed: len(o.Slices),
		Slices: notNil(o.Slices[:min(maxPredicted, len(o.Slices))]), Copies: []PredictedCopies{}, Notes: notNil(o.Notes), Freshness: f}
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
