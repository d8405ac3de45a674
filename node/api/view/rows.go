package view

import (
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/gather"
	"cartwheel.dev/node/api/index"
	"cartwheel.dev/node/protocol/status"
)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// OfLink shows a way whose node said so a while ago.
func OfLink(from geoconfig.Node, l status.Link, ago time.Duration) NetworkLink {
	v := NetworkLink{From: from.ID, FromSite: from.Site, To: l.To, ToSite: l.Site, Path: l.Path}
	if l.Samples > 0 {
		v.MeasuredMS, v.LeastMS = new(milliseconds(l.MeasuredNS)), new(milliseconds(l.LeastNS))
		v.AgeMS = new((l.AgeNS + ago).Milliseconds())
	}
	if l.PredictedNS > 0 {
		v.PredictedMS = new(milliseconds(l.PredictedNS))
	}
	return v
}

// OfProbe shows a way that its node has just measured.
func OfProbe(from geoconfig.Node, l status.Link) ProbedLink {
	out := ProbedLink{NetworkLink: OfLink(from, l, 0), RoundTripsMS: []float64{}, Error: l.Error}
	for _, rtt := range l.ProbeNS {
		out.RoundTripsMS = append(out.RoundTripsMS, milliseconds(rtt))
	}
	return out
}

// OfNode shows a node's row with its last word, and what it still has where it is
// being drained; nil: it is not.
func OfNode(n geoconfig.Node, r gather.Reading[status.Node], left *Left) Node {
	out := Node{ID: n.ID, Site: n.Site, Addresses: NotNil(n.Addresses), Incarnation: n.Incarnation, Version: n.Version, State: "up",
		Draining: n.Draining, Left: left, Coordinate: OfCoordinate(status.Coordinate(n.Coordinate)), Revision: n.Revision}
	switch {
	case n.Incarnation == 0:
		out.State = "never_started"
	case r.Err != nil || r.At.IsZero():
		out.State = "unreachable"
	}
	if r.At.IsZero() {
		return out
	}
	v := r.Value
	out.Version = v.Version
	out.Live = &NodeLive{AsOfAt: r.At, UptimeMS: v.UptimeNS.Milliseconds(), CapacityBytes: v.CapacityBytes, UsedBytes: v.UsedBytes, FreeBytes: v.FreeBytes,
		ReadOnly: v.ReadOnly, SlicesActive: v.SlicesActive, SlicesStandby: v.SlicesStandby, SlicesJunior: v.SlicesJunior,
		Sessions: v.Sessions, ObjectLeases: v.ObjectLeases, GeoConfig: v.GeoConfig.Reachable}
	return out
}

// OfCoordinate shows a position.
func OfCoordinate(c status.Coordinate) Coordinate {
	return Coordinate{VectorMS: NotNil(c.Vector), HeightMS: c.Height, Error: c.Error}
}

// memberState is a member's state in words.
func memberState(m geoconfig.Member) string {
	switch m.State {
	case geoconfig.Normal:
		return "normal"
	case geoconfig.Recovering:
		return "recovering"
	case geoconfig.Migrating:
		return "migrating"
	}
	return "failed"
}

// OfSlice shows a row, the active's copy first. siteOf says where a node stands.
func OfSlice(r *geoconfig.SliceRow, isUp func(ids.Node) bool, siteOf func(ids.Node) ids.Site) Slice {
	out := Slice{ID: r.ID, State: index.StateOf(r, isUp), Epoch: r.Epoch, Active: r.Active, ActiveSite: siteOf(r.Active), Members: []Member{},
		Policy: OfPolicy(r.Policy), Copies: index.Normals(r), Closed: r.Closed, Revision: r.Revision}
	for _, m := range r.Members {
		out.Members = append(out.Members, Member{Node: m.Node, Site: siteOf(m.Node), State: memberState(m), Active: m.Node == r.Active})
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

// OfPolicy shows a policy.
func OfPolicy(p geoconfig.Policy) Policy {
	kind := "ordinary"
	if p.Kind == geoconfig.WriteOnce {
		kind = "write_once"
	}
	return Policy{Home: p.Home, Level: p.Level, Sites: p.Sites, Kind: kind, CoherenceMS: p.Coherence.Milliseconds()}
}

// OfUser shows a user's row.
func OfUser(u geoconfig.User) User {
	role := "user"
	if u.Admin {
		role = "administrator"
	}
	return User{Name: u.Name, Key: u.Key, UID: u.UID, GIDs: NotNil(u.GIDs), TrustedHost: u.TrustedHost, Role: role, Revision: u.Revision}
}
