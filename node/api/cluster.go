package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/health"
	"cartwheel.dev/node/protocol/status"
)

// maxNamed is how many causes of one kind are listed one by one; of more, the
// last one tells how many there are.
const maxNamed = 5

// judged is how the cluster is.
type judged struct {
	causes []health.Cause
	counts Counts
	room   Capacity
	fresh  Freshness
}

// judge asks the nodes, counts, and says what is wrong.
func (s *Server) judge(ctx context.Context) judged {
	nodes, said := s.nodeStates(ctx)
	j := judged{fresh: freshOf(s, nodes, said)}
	isUp, sessions := up(said), 0
	sitesUp := map[ids.Site]bool{}
	away := !j.fresh.GeoConfig.Reachable
	for _, n := range nodes {
		r := said[n.ID]
		if !r.at.IsZero() {
			j.room.Nodes++
			j.room.CapacityBytes += r.value.CapacityBytes
			j.room.UsedBytes += r.value.UsedBytes
			j.room.FreeBytes += r.value.FreeBytes
		}
		if !isUp(n.ID) {
			j.causes = append(j.causes, health.Silent(n.ID, n.Site))
			continue
		}
		j.counts.NodesUp++
		sitesUp[n.Site] = true
		sessions += r.value.Sessions
		away = away || !r.value.GeoConfig.Reachable
		if r.value.ReadOnly {
			j.causes = append(j.causes, health.Full(n.ID, n.Site))
		}
	}
	j.counts.Nodes, j.counts.Sites, j.counts.SitesUp = len(nodes), len(s.o.Directory.Sites()), len(sitesUp)
	if j.counts.NodesUp > 0 {
		j.counts.Sessions = &sessions
	}
	if away {
		j.causes = append(j.causes, health.Away())
	}
	j.causes = append(j.causes, s.judgeSlices(&j.counts, isUp)...)
	health.Rank(j.causes)
	return j
}

// judgeSlices counts the slices by state and says what they lack.
func (s *Server) judgeSlices(c *Counts, isUp func(ids.Node) bool) []health.Cause {
	var lacking, silent []health.Cause
	s.index.each(func(r *geoconfig.SliceRow) {
		c.Slices++
		switch stateOf(r, isUp) {
		case unavailable:
			if c.SlicesUnavailable++; c.SlicesUnavailable <= maxNamed {
				silent = append(silent, health.Lacking(r.ID, false, "has no active that answers"))
			}
		case underProtected:
			if c.SlicesUnderProtected++; c.SlicesUnderProtected <= maxNamed {
				lacking = append(lacking, health.Lacking(r.ID, true, fmt.Sprintf("has %d of %d copies", normals(r), r.Policy.Level)))
			}
		default:
			c.SlicesProtected++
		}
	})
	if c.Slices == 0 {
		return []health.Cause{health.Rootless()}
	}
	if more := c.SlicesUnavailable - maxNamed; more > 0 {
		silent = append(silent, health.Cause{Kind: health.SliceSilent, Severity: health.Critical, Subject: "slices", Text: fmt.Sprintf("%d more slices have no active that answers", more)})
	}
	if more := c.SlicesUnderProtected - maxNamed; more > 0 {
		lacking = append(lacking, health.Cause{Kind: health.SliceLacking, Severity: health.Warning, Subject: "slices", Text: fmt.Sprintf("%d more slices have fewer copies than they should", more)})
	}
	return append(silent, lacking...)
}

func (s *Server) getOverview(ctx context.Context, _ *none) (*answer[Overview], error) {
	j := s.judge(ctx)
	out := Overview{Cluster: s.o.Directory.Cluster().ID, Healthy: len(j.causes) == 0, Sentence: health.Sentence(j.causes, j.counts.Nodes, j.counts.Sites),
		Causes: []Cause{}, Counts: j.counts, Capacity: j.room, Served: Served{s.o.Self, s.o.Site, s.o.Version}, Revision: j.fresh.GeoConfig.Revision, Freshness: j.fresh}
	for _, c := range j.causes {
		out.Causes = append(out.Causes, Cause{string(c.Kind), string(c.Severity), c.Text, c.Subject})
	}
	return &answer[Overview]{Body: out}, nil
}

// statusNotice is the cluster's state for the stream of events.
func (s *Server) statusNotice(ctx context.Context) StatusEvent {
	j := s.judge(ctx)
	e := StatusEvent{Healthy: len(j.causes) == 0, Sentence: health.Sentence(j.causes, j.counts.Nodes, j.counts.Sites), Unreachable: []ids.Node{},
		GeoConfig: j.fresh.GeoConfig.Reachable, AsOfAt: j.fresh.AsOfAt}
	for _, u := range j.fresh.Unreachable {
		e.Unreachable = append(e.Unreachable, u.Node)
	}
	return e
}

func (s *Server) getNetwork(ctx context.Context, _ *none) (*answer[Network], error) {
	nodes := s.o.Directory.Nodes()
	said := s.nets.all(ctx, idsOf(nodes))
	out := Network{Nodes: []NetworkNode{}, Links: []NetworkLink{}, Freshness: freshOf(s, nodes, said)}
	for _, n := range nodes {
		r := said[n.ID]
		v := NetworkNode{ID: n.ID, Site: n.Site, Reachable: r.err == nil && !r.at.IsZero()}
		if !r.at.IsZero() {
			c := viewCoordinate(r.value.Coordinate)
			v.Coordinate, v.AsOfAt = &c, &r.at
		}
		out.Nodes = append(out.Nodes, v)
		for _, l := range r.value.Links {
			out.Links = append(out.Links, viewLink(n, l, s.o.Wall().Sub(r.at)))
		}
	}
	return &answer[Network]{Body: out}, nil
}

// viewLink shows a way whose node said so a while ago.
func viewLink(from geoconfig.Node, l status.Link, ago time.Duration) NetworkLink {
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

// listOperations finds the work under way in the rows: each junior gets a copy or
// catches up. How far it is, its own list and the active's tell.
func (s *Server) listOperations(ctx context.Context, _ *none) (*answer[List[Operation]], error) {
	var rows []geoconfig.SliceRow
	s.index.each(func(r *geoconfig.SliceRow) {
		if slices.ContainsFunc(r.Members, func(m geoconfig.Member) bool { return m.State.Junior() }) {
			rows = append(rows, *r)
		}
	})
	nodes := s.o.Directory.Nodes()
	said := map[ids.Node]reading[[]status.Slice]{}
	f := s.fresh()
	if len(rows) > 0 && s.index.len() <= maxListed {
		said = s.lists.all(ctx, idsOf(nodes))
		f = freshOf(s, nodes, said)
	}
	var out []Operation
	for i := range rows {
		for _, m := range rows[i].Members {
			if m.State.Junior() {
				out = append(out, s.viewOperation(&rows[i], m, said))
			}
		}
	}
	return listOf(s, out, f), nil
}

func (s *Server) viewOperation(r *geoconfig.SliceRow, m geoconfig.Member, said map[ids.Node]reading[[]status.Slice]) Operation {
	site := s.index.siteOf(m.Node)
	o := Operation{Kind: "catch_up", Slice: r.ID, Node: m.Node, Site: site, Text: fmt.Sprintf("the node at %s catches up with slice %d", site, r.ID)}
	if m.State == geoconfig.Migrating {
		o.Kind, o.Text = "copy", fmt.Sprintf("the node at %s gets a copy of slice %d", site, r.ID)
	}
	of := func(id ids.Node) *status.Slice {
		list := said[id]
		i := slices.IndexFunc(list.value, func(x status.Slice) bool { return x.ID == r.ID })
		if i < 0 || list.err != nil {
			return nil
		}
		return &list.value[i]
	}
	active, own := of(r.Active), of(m.Node)
	if active != nil {
		o.TotalBytes = active.StoredBytes
	}
	if active != nil && own != nil && active.Commit >= own.Applied {
		o.Behind = new(int64(active.Commit - own.Applied))
	}
	return o
}
