package reads

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/drain"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/whatif"
)

// usualFailedAfter is the nodes' failed_after where a request names none.
const usualFailedAfter = 30 * time.Minute

// WhatIf predicts from what the nodes say now. It changes nothing. One prediction
// is made at a time, since it takes a core for as long as it lasts.
func (s *Reads) WhatIf(ctx context.Context, in *struct{ Body view.WhatIf }) (*view.Answer[view.Prediction], error) {
	select {
	case s.predicting <- struct{}{}:
		defer func() { <-s.predicting }()
	default:
		return nil, fault.E(fault.Overloaded, "reads.WhatIf", "what-if", "another prediction is being made")
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
	return &view.Answer[view.Prediction]{Body: view.OfPrediction(&o, f)}, nil
}

// CheckDrain says what draining nodes would do, by the rows that this node knows and
// by what the nodes say now. It changes nothing. It shares the turn of predictions.
// Errors: NotFound, Overloaded.
func (s *Reads) CheckDrain(ctx context.Context, nodes []ids.Node) (drain.Verdict, error) {
	select {
	case s.predicting <- struct{}{}:
		defer func() { <-s.predicting }()
	default:
		return drain.Verdict{}, fault.E(fault.Overloaded, "reads.CheckDrain", "drain", "a prediction is being made")
	}
	state, _ := s.whatIfState(ctx)
	return drain.Check(state, nodes)
}

// whatIfState gathers what a prediction starts from.
func (s *Reads) whatIfState(ctx context.Context) (whatif.State, view.Freshness) {
	nodes, said := s.nodeStates(ctx)
	nets := s.nets.All(ctx, idsOf(nodes))
	state, isUp := whatif.State{}, up(said)
	for _, n := range nodes {
		net := nets[n.ID]
		if !net.At.IsZero() {
			n.Coordinate = geoconfig.Coordinate(net.Value.Coordinate)
		}
		state.Nodes = append(state.Nodes, whatif.Node{Node: n, Away: !isUp(n.ID)})
		state.SinglePoint = state.SinglePoint || said[n.ID].Value.GeoConfig.SinglePoint
		for _, l := range net.Value.Links {
			if l.Samples > 0 {
				state.Measured = append(state.Measured, whatif.Measurement{From: n.ID, To: l.To, RTT: l.MeasuredNS})
			}
		}
	}
	sizes := s.sizes(ctx, nodes)
	state.Revision = s.index.Each(func(r *geoconfig.SliceRow) {
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
func (s *Reads) sizes(ctx context.Context, nodes []geoconfig.Node) map[ids.Slice]int64 {
	out := map[ids.Slice]int64{}
	if s.index.Len() > maxListed {
		return out
	}
	for id, list := range s.lists.All(ctx, idsOf(nodes)) {
		for _, x := range list.Value {
			if isActive(&x, id) && x.StoredBytes != nil {
				out[x.ID] = *x.StoredBytes
			}
		}
	}
	return out
}

func isActive(x *status.Slice, id ids.Node) bool { return x.SliceRow.Active == id }
