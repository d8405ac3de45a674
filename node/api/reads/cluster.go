package reads

import (
	"context"
	"fmt"
	"maps"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/api/events"
	"cartwheel.dev/node/api/index"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/health"
)

// maxNamed is how many causes of one kind are listed one by one; of more, the
// last one tells how many there are.
const maxNamed = 5

// judged is how the cluster is.
type judged struct {
	causes []health.Cause
	counts view.Counts
	room   view.Capacity
	fresh  view.Freshness
	// versions are those of the nodes that answer.
	versions map[string][]ids.Node
}

// judge asks the nodes, counts, and says what is wrong.
func (s *Reads) judge(ctx context.Context) judged {
	nodes, said := s.nodeStates(ctx)
	j := judged{fresh: freshOf(s, nodes, said), versions: map[string][]ids.Node{}}
	isUp, sessions := up(said), 0
	sites, sitesUp := map[ids.Site]bool{}, map[ids.Site]bool{}
	away := !j.fresh.GeoConfig.Reachable
	for _, n := range nodes {
		r := said[n.ID]
		sites[n.Site] = true
		if !r.At.IsZero() {
			j.room.Nodes++
			j.room.CapacityBytes += r.Value.CapacityBytes
			j.room.UsedBytes += r.Value.UsedBytes
			j.room.FreeBytes += r.Value.FreeBytes
		}
		if !isUp(n.ID) {
			j.causes = append(j.causes, health.Silent(n.ID, n.Site))
			continue
		}
		j.counts.NodesUp++
		j.versions[r.Value.Version] = append(j.versions[r.Value.Version], n.ID)
		sitesUp[n.Site] = true
		sessions += r.Value.Sessions
		away = away || !r.Value.GeoConfig.Reachable
		if r.Value.ReadOnly {
			j.causes = append(j.causes, health.Full(n.ID, n.Site))
		}
		j.causes = append(j.causes, health.Scrubbed(n.ID, n.Site, r.Value.Scrub)...)
	}
	j.counts.Nodes, j.counts.Sites, j.counts.SitesUp = len(nodes), len(sites), len(sitesUp)
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
func (s *Reads) judgeSlices(c *view.Counts, isUp func(ids.Node) bool) []health.Cause {
	var lacking, silent []health.Cause
	s.index.Each(func(r *geoconfig.SliceRow) {
		c.Slices++
		switch index.StateOf(r, isUp) {
		case index.Unavailable:
			if c.SlicesUnavailable++; c.SlicesUnavailable <= maxNamed {
				silent = append(silent, health.Lacking(r.ID, false, "has no active that answers"))
			}
		case index.UnderProtected:
			if c.SlicesUnderProtected++; c.SlicesUnderProtected <= maxNamed {
				lacking = append(lacking, health.Lacking(r.ID, true, fmt.Sprintf("has %d of %d copies", index.Normals(r), r.Policy.Level)))
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

// GetOverview sums up how the cluster is.
func (s *Reads) GetOverview(ctx context.Context, _ *view.None) (*view.Answer[view.Overview], error) {
	j := s.judge(ctx)
	cluster := s.o.Directory.Cluster()
	out := view.Overview{Cluster: cluster.ID, Feature: view.Feature{Level: cluster.Feature, Known: version.Feature}, Versions: []view.Version{}, Healthy: len(j.causes) == 0, Sentence: health.Sentence(j.causes, j.counts.Nodes, j.counts.Sites),
		Causes: []view.Cause{}, Counts: j.counts, Capacity: j.room, Served: view.Served{Node: s.o.Self, Site: s.o.Site, Version: s.o.Version}, Revision: j.fresh.GeoConfig.Revision, Freshness: j.fresh}
	for _, c := range j.causes {
		out.Causes = append(out.Causes, view.Cause{Kind: string(c.Kind), Severity: string(c.Severity), Text: c.Text, Subject: c.Subject})
	}
	for _, v := range slices.Sorted(maps.Keys(j.versions)) {
		out.Versions = append(out.Versions, view.Version{Version: v, Nodes: j.versions[v]})
	}
	return &view.Answer[view.Overview]{Body: out}, nil
}

// statusNotice is the cluster's state for the stream of events.
func (s *Reads) statusNotice(ctx context.Context) events.StatusEvent {
	j := s.judge(ctx)
	e := events.StatusEvent{Healthy: len(j.causes) == 0, Sentence: health.Sentence(j.causes, j.counts.Nodes, j.counts.Sites), Unreachable: []ids.Node{},
		GeoConfig: j.fresh.GeoConfig.Reachable, AsOfAt: j.fresh.AsOfAt}
	for _, u := range j.fresh.Unreachable {
		e.Unreachable = append(e.Unreachable, u.Node)
	}
	return e
}
