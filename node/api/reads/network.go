package reads

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
)

// GetNetwork shows the distances between the nodes.
func (s *Reads) GetNetwork(ctx context.Context, _ *view.None) (*view.Answer[view.Network], error) {
	nodes := s.o.Directory.Nodes()
	said := s.nets.All(ctx, idsOf(nodes))
	out := view.Network{Nodes: []view.NetworkNode{}, Links: []view.NetworkLink{}, Freshness: freshOf(s, nodes, said)}
	for _, n := range nodes {
		r := said[n.ID]
		v := view.NetworkNode{ID: n.ID, Site: n.Site, Reachable: r.Err == nil && !r.At.IsZero()}
		if !r.At.IsZero() {
			c := view.OfCoordinate(r.Value.Coordinate)
			v.Coordinate, v.AsOfAt = &c, &r.At
		}
		out.Nodes = append(out.Nodes, v)
		for _, l := range r.Value.Links {
			out.Links = append(out.Links, view.OfLink(n, l, s.o.Wall().Sub(r.At)))
		}
	}
	return &view.Answer[view.Network]{Body: out}, nil
}

// probeLimit bounds how long a probe may take. The node that measures gives each of
// the others three seconds, and sixteen of them at once.
const probeLimit = 12 * time.Second

// Probe has a node measure its distances now. It changes nothing that is kept but
// what that node knows of them. One is made at a time. Errors: NotFound, Overloaded,
// Unreachable and TimedOut.
func (s *Reads) Probe(ctx context.Context, in *struct{ Body view.Probe }) (*view.Answer[view.Probed], error) {
	const op fault.Op = "reads.Probe"
	from := s.o.Self
	if in.Body.From != "" {
		from = in.Body.From
	}
	known := map[ids.Node]geoconfig.Node{}
	for _, n := range s.o.Directory.Nodes() {
		known[n.ID] = n
	}
	for _, id := range append([]ids.Node{from}, in.Body.To...) {
		if _, ok := known[id]; !ok {
			return nil, fault.E(fault.NotFound, op, "nodes/"+string(id), "is no node of the roster")
		}
	}
	select {
	case s.probing <- struct{}{}:
		defer func() { <-s.probing }()
	default:
		return nil, fault.E(fault.Overloaded, op, "network", "another measurement is being made")
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	said, err := s.o.Asker.Probe(ctx, from, in.Body.To, in.Body.Times)
	if err != nil {
		return nil, err
	}
	out := view.Probed{From: from, FromSite: known[from].Site, Links: []view.ProbedLink{}, MeasuredAt: s.o.Wall()}
	for _, l := range said.Links {
		out.Links = append(out.Links, view.OfProbe(known[from], l))
	}
	return &view.Answer[view.Probed]{Body: out}, nil
}
