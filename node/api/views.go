package api

import (
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// geoConfig says how this node stands with the configuration store.
func (s *Server) geoConfig() GeoConfig {
	g := GeoConfig{Reachable: true, Revision: s.o.Directory.Revision()}
	if away := s.o.Directory.Away(); !away.IsZero() {
		g.Reachable, g.AwayMS = false, s.o.Wall().Sub(away).Milliseconds()
	}
	// The node's own word may be newer than what follows the store has noticed.
	if own, ok := s.statuses.copy([]ids.Node{s.o.Self})[s.o.Self]; ok && own.err == nil && !own.at.IsZero() {
		g.Reachable = g.Reachable && own.value.GeoConfig.Reachable
	}
	return g
}

// fresh is the freshness of an answer that has nothing but this node's own copy of
// the configuration. While the store is away, that is as old as its absence.
func (s *Server) fresh() Freshness {
	f := Freshness{AsOfAt: s.o.Wall(), Unreachable: []Unreachable{}, GeoConfig: s.geoConfig()}
	if away := s.o.Directory.Away(); !away.IsZero() {
		f.AsOfAt = away
	}
	return f
}

// freshOf is the freshness of an answer with what nodes said.
func freshOf[T any](s *Server, nodes []geoconfig.Node, said map[ids.Node]reading[T]) Freshness {
	f := s.fresh()
	for _, n := range nodes {
		r, asked := said[n.ID]
		if asked && r.err == nil {
			if r.at.Before(f.AsOfAt) {
				f.AsOfAt = r.at
			}
			continue
		}
		u := Unreachable{Node: n.ID, Site: n.Site, Reason: "it was not asked in time"}
		if asked {
			u.Reason = fault.Explain(r.err)
		}
		if !r.at.IsZero() {
			u.LastSeenAt = &r.at
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

func viewNode(n geoconfig.Node, r reading[status.Node]) Node {
	out := Node{ID: n.ID, Site: n.Site, Addresses: notNil(n.Addresses), Incarnation: n.Incarnation, Version: n.Version, State: "up",
		Coordinate: viewCoordinate(status.Coordinate(n.Coordinate)), Revision: n.Revision}
	switch {
	case n.Incarnation == 0:
		out.State = "never_started"
	case r.err != nil || r.at.IsZero():
		out.State = "unreachable"
	}
	if r.at.IsZero() {
		return out
	}
	v := r.value
	out.Version = v.Version
	out.Live = &NodeLive{AsOfAt: r.at, UptimeMS: v.UptimeNS.Milliseconds(), CapacityBytes: v.CapacityBytes, UsedBytes: v.UsedBytes, FreeBytes: v.FreeBytes,
		ReadOnly: v.ReadOnly, SlicesActive: v.SlicesActive, SlicesStandby: v.SlicesStandby, SlicesJunior: v.SlicesJunior,
		Sessions: v.Sessions, ObjectLeases: v.ObjectLeases, GeoConfig: v.GeoConfig.Reachable}
	return out
}

func viewCoordinate(c status.Coordinate) Coordinate {
	return Coordinate{VectorMS: notNil(c.Vector), HeightMS: c.Height, Error: c.Error}
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// memberStates are the states of members in words.
var memberStates = map[geoconfig.MemberState]string{
	geoconfig.Normal: "normal", geoconfig.Recovering: "recovering", geoconfig.Migrating: "migrating", geoconfig.Failed: "failed",
}

// viewSlice shows a row, the active's copy first.
func (s *Server) viewSlice(r *geoconfig.SliceRow, isUp func(ids.Node) bool) Slice {
	out := Slice{ID: r.ID, State: stateOf(r, isUp), Epoch: r.Epoch, Active: r.Active, ActiveSite: s.index.siteOf(r.Active), Members: []Member{},
		Policy: viewPolicy(r.Policy), Copies: normals(r), Closed: r.Closed, Revision: r.Revision}
	for _, m := range r.Members {
		out.Members = append(out.Members, Member{Node: m.Node, Site: s.index.siteOf(m.Node), State: memberStates[m.State], Active: m.Node == r.Active})
	}
	slices.SortStableFunc(out.Members, func(a, b Member) int {
		switch {
		case a.Active == b.Active:
			return 0
		case a.Active:
			return -1
		}
		return 1
	})
	return out
}

func viewPolicy(p geoconfig.Policy) Policy {
	kind := "ordinary"
	if p.Kind == geoconfig.WriteOnce {
		kind = "write_once"
	}
	return Policy{Home: p.Home, Level: p.Level, Sites: p.Sites, Kind: kind, CoherenceMS: p.Coherence.Milliseconds()}
}

func viewUser(u geoconfig.User) User {
	role := "user"
	if u.Admin {
		role = "administrator"
	}
	return User{Name: u.Name, Key: u.Key, UID: u.UID, GIDs: notNil(u.GIDs), TrustedHost: u.TrustedHost, Role: role, Revision: u.Revision}
}
