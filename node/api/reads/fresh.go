package reads

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/gather"
	"cartwheel.dev/node/api/view"
)

// geoConfig says how this node stands with the configuration store.
func (s *Reads) geoConfig() view.GeoConfig {
	g := view.GeoConfig{Reachable: true, Revision: s.o.Directory.Revision()}
	if away := s.o.Directory.Away(); !away.IsZero() {
		g.Reachable, g.AwayMS = false, s.o.Wall().Sub(away).Milliseconds()
	}
	// The node's own word may be newer than what follows the store has noticed.
	if own, ok := s.statuses.Known([]ids.Node{s.o.Self})[s.o.Self]; ok && own.Err == nil && !own.At.IsZero() {
		g.Reachable = g.Reachable && own.Value.GeoConfig.Reachable
	}
	return g
}

// Fresh is the freshness of an answer that has nothing but this node's own copy of
// the configuration. While the store is away, that is as old as its absence.
func (s *Reads) Fresh() view.Freshness {
	f := view.Freshness{AsOfAt: s.o.Wall(), Unreachable: []view.Unreachable{}, GeoConfig: s.geoConfig()}
	if away := s.o.Directory.Away(); !away.IsZero() {
		f.AsOfAt = away
	}
	return f
}

// freshOf is the freshness of an answer with what nodes said.
func freshOf[T any](s *Reads, nodes []geoconfig.Node, said map[ids.Node]gather.Reading[T]) view.Freshness {
	f := s.Fresh()
	for _, n := range nodes {
		r, asked := said[n.ID]
		if asked && r.Err == nil {
			if r.At.Before(f.AsOfAt) {
				f.AsOfAt = r.At
			}
			continue
		}
		u := view.Unreachable{Node: n.ID, Site: n.Site, Reason: "it has not answered yet"}
		if asked {
			u.Reason = fault.Explain(r.Err)
		}
		if !r.At.IsZero() {
			u.LastSeenAt = &r.At
		}
		f.Unreachable = append(f.Unreachable, u)
	}
	return f
}

// idsOf lists the IDs of nodes.
func idsOf(nodes []geoconfig.Node) []ids.Node {
	out := make([]ids.Node, len(nodes))
	for i := range nodes {
		out[i] = nodes[i].ID
	}
	return out
}
