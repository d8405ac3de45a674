package reads

import (
	"context"

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
