package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/server/audit"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/vivaldi"
	"cartwheel.dev/node/wire"
)

const (
	// surveyEvery is how often the node tells its coordinate to its peers, and
	// auditEvery how often it judges what it measured.
	surveyEvery = time.Second
	auditEvery  = 5 * time.Second
	// publishEvery is the least time between two changes of the coordinate in
	// the node's row; the first comes as soon as it means something.
	publishEvery = time.Minute
	// publishMoved is the least way, in milliseconds, that is worth a change,
	// publishShare the least share of the distance from the origin.
	publishMoved = 2
	publishShare = 0.05
	// publishError is the error from which a first coordinate means something,
	// and how much less a later one must be to be worth a change.
	publishError = 0.5
	publishGain  = 0.1
)

// nearness is what the node knows of distances.
type nearness struct {
	vicinity *proximity.Vicinity

	mu        sync.Mutex // guards below
	found     []status.Finding
	published geoconfig.Coordinate
	at        time.Duration // when that was; 0: not in this life
}

func (n *nearness) findings() []status.Finding {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.found)
}

// chance is the server's randomness as a source.
type chance struct{ s *Server }

// Uint64 implements vivaldi.Source.
func (c chance) Uint64() uint64 { return c.s.random() }

func (s *Server) openVicinity() error {
	var err error
	if s.near.vicinity, err = proximity.New(s.clock, chance{s}); err == nil {
		s.near.vicinity.Here(ids.Site(s.config.Site))
	}
	return err
}

// sampled takes in a round trip to a peer. Clients do not count: nothing is
// sent by way of them, and nobody knows them to be honest.
func (s *Server) sampled(peer string, rtt time.Duration, at *wire.Coordinate) {
	if s.serving.Load() && s.who.IsNode(peer) {
		s.near.vicinity.Sample(ids.Node(peer), rtt, at)
	}
}

// survey keeps the node's coordinate where its peers and the configuration see
// it, and audits the sites, until ctx ends. Every node keeps connections to all
// others, and their heartbeats measure; a neighbour that is not connected is
// tried by the host itself.
func (s *Server) survey(ctx context.Context) {
	if row, ok := s.directory.Node(s.id); ok {
		s.near.vicinity.Restore(row.Coordinate)
		s.near.mu.Lock()
		s.near.published = row.Coordinate
		s.near.mu.Unlock()
	}
	tick := time.NewTicker(surveyEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		for _, row := range s.directory.Nodes() {
			if row.ID != s.id {
				s.near.vicinity.Place(row.ID, row.Coordinate)
				s.near.vicinity.Declare(row.ID, row.Site, row.Apart)
			}
		}
		s.host.SetCoordinate(proximity.ForWire(s.near.vicinity.Coordinate()))
		changed := false
		if n%int(auditEvery/surveyEvery) == 0 {
			s.near.vicinity.Keep(func(id ids.Node) bool { _, ok := s.directory.Node(id); return ok })
			changed = s.auditSites(ctx)
		}
		if s.publish() || changed {
			s.refreshRow(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// publish decides whether the coordinate in the node's row should change.
func (s *Server) publish() bool {
	c := s.near.vicinity.Coordinate()
	now := s.clock()
	n := &s.near
	n.mu.Lock()
	defer n.mu.Unlock()
	if !worthPublishing(n.published, proximity.ForRow(c)) || n.at != 0 && now-n.at < publishEvery {
		return false
	}
	n.published, n.at = proximity.ForRow(c), now
	return true
}

// worthPublishing reports whether a node's coordinate has changed by enough.
func worthPublishing(old, now geoconfig.Coordinate) bool {
	if len(old.Vector) == 0 {
		return now.Error <= publishError
	}
	from, err := vivaldi.Place(old.Vector, old.Height, old.Error)
	to, err2 := vivaldi.Place(now.Vector, now.Height, now.Error)
	if err != nil || err2 != nil {
		return err2 == nil
	}
	moved := math.Abs(float64(to.Height-from.Height)) + distance(from, to)
	size := distance(from, vivaldi.Coordinate{}) + float64(from.Height)
	return moved > max(publishMoved, publishShare*size) || old.Error-now.Error > publishGain
}

// distance is that of the vectors alone.
func distance(a, b vivaldi.Coordinate) float64 {
	a.Height, b.Height = 0, 0
	return a.Distance(b)
}

// placeRow puts into the node's row where it is.
func (s *Server) placeRow(row *geoconfig.Node) {
	n := &s.near
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.published.Vector) > 0 {
		row.Coordinate = n.published
	}
	row.Together, row.Apart = nil, nil
	for _, f := range n.found {
		list := &row.Together
		if f.Kind == status.SiteApart {
			list = &row.Apart
		}
		if len(*list) < geoconfig.MaxNeighbours {
			*list = append(*list, f.Other)
		}
	}
}

// auditSites judges what was measured, and tells of what is new.
func (s *Server) auditSites(ctx context.Context) (changed bool) {
	var sights []audit.Sight
	for _, l := range s.near.vicinity.Links() {
		row, ok := s.directory.Node(l.Node)
		if ok && l.Samples > 0 {
			sights = append(sights, audit.Sight{Node: l.Node, Site: row.Site, Least: l.Least, Samples: l.Count, Age: l.Age})
		}
	}
	n := &s.near
	n.mu.Lock()
	before := n.found
	n.found = audit.Find(s.id, ids.Site(s.config.Site), sights, s.auditLimits(), before)
	begun, over := audit.Changes(before, n.found)
	n.mu.Unlock()
	for _, f := range begun {
		s.log.Warn("the site audit found nodes that are not where they are said to be", "finding", f.String())
	}
	for _, f := range over {
		s.log.Info("what the site audit found is so no more", "kind", string(f.Kind), "peer", f.Other, "site", f.OtherSite)
	}
	if len(begun)+len(over) == 0 {
		return false
	}
	s.recordAudit(ctx, begun, over)
	return true
}

func (s *Server) auditLimits() audit.Limits {
	l := audit.DefaultLimits()
	l.Spread = s.config.SiteSpread
	return l
}

// recordAudit appends to the audit log of the configuration. That it cannot
// does no harm: the log has a line, and status shows what is found.
func (s *Server) recordAudit(ctx context.Context, begun, over []status.Finding) {
	b := geoconfig.Batch{Key: fmt.Sprintf("audit/%s/%x/%d", s.id, s.boot, s.random())}
	add := func(action, detail string) {
		if len(b.Audit) < geoconfig.MaxBatchRows {
			b.Audit = append(b.Audit, geoconfig.AuditRecord{AtNS: s.deps.Wall().UnixNano(), Who: string(s.id), Action: action,
				Subject: geoconfig.Node{ID: s.id}.Key().String(), Detail: detail})
		}
	}
	for _, f := range begun {
		add("site.astray", f.String())
	}
	for _, f := range over {
		add("site.aright", fmt.Sprintf("%s: no more of %s at %s", f.Kind, f.Other.Short(), f.OtherSite))
	}
	call, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := s.geo.Apply(call, b); err != nil && ctx.Err() == nil {
		s.log.Debug("the site audit could not be recorded", "error", err)
	}
}

// far stands for a distance that is not known.
const far = time.Hour

// apart is how far two nodes are from each other, as far as this one knows.
func (s *Server) apart(a, b ids.Node) (time.Duration, bool) {
	switch s.id {
	case a:
		e, ok := s.near.vicinity.Estimate(b)
		return e.RTT, ok
	case b:
		e, ok := s.near.vicinity.Estimate(a)
		return e.RTT, ok
	}
	return s.near.vicinity.Between(a, b)
}

// relays lists the nodes over which another one may be reached, the least
// round trip in all first.
func (s *Server) relays(_ context.Context, to string) []string {
	if !s.serving.Load() {
		return nil
	}
	type relay struct {
		id  string
		rtt time.Duration
	}
	var all []relay
	for _, n := range s.directory.Nodes() {
		if n.ID == s.id || string(n.ID) == to {
			continue
		}
		near, ok := s.apart(s.id, n.ID)
		on, ok2 := s.apart(n.ID, ids.Node(to))
		if !ok || !ok2 {
			near, on = far, 0
		}
		all = append(all, relay{string(n.ID), near + on})
	}
	slices.SortFunc(all, func(a, b relay) int { return cmp.Or(cmp.Compare(a.rtt, b.rtt), cmp.Compare(a.id, b.id)) })
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].id
	}
	return out
}

// maySplice lets nodes and clients reach the nodes of the roster over this one,
// and nodes the geo-config server.
func (s *Server) maySplice(from, to string) error {
	if !s.serving.Load() {
		return fault.E(fault.Again, "server.splice", from, "this node is starting")
	}
	if err := s.who.Peer(from); err != nil {
		return err
	}
	if s.config.holdsGeoConfig(to) {
		return s.who.Node(from)
	}
	return s.who.Node(to)
}

const (
	// maxProbes bounds the measurements of one request for each node, and
	// probeFlight the nodes that are measured at once.
	maxProbes   = 20
	probeFlight = 16
	probeLimit  = 3 * time.Second
)

// net tells what the node knows of its distances, after measuring where asked.
func (s *Server) net(ctx context.Context, w *identity.Who, req *pb.NetRequest) (proto.Message, error) {
	times, targets := int(min(req.Probes, maxProbes)), s.targets(req.Nodes)
	if err := s.measured.take(w, times*len(targets), s.clock()); err != nil {
		return nil, err
	}
	s.near.mu.Lock()
	out := status.Net{ID: s.id, Site: ids.Site(s.config.Site), Published: status.Coordinate(s.near.published)}
	if s.near.at != 0 {
		out.PublishedNS = s.clock() - s.near.at
	}
	s.near.mu.Unlock()
	probed := s.probeAll(ctx, times, targets)
	out.Coordinate = status.Coordinate(proximity.ForRow(s.near.vicinity.Coordinate()))
	known := map[ids.Node]proximity.Link{}
	for _, l := range s.near.vicinity.Links() {
		known[l.Node] = l
	}
	for _, n := range targets {
		k := known[n.ID]
		l := status.Link{To: n.ID, Site: n.Site, MeasuredNS: k.Smoothed, LeastNS: k.Least, Samples: k.Samples, AgeNS: k.Age, PredictedNS: k.Predicted}
		if path, up := s.host.Path(string(n.ID)); up {
			l.Path, l.PathNS = describe(path), path.RTT
		}
		if p, ok := probed[n.ID]; ok {
			l.ProbeNS = p.rtts
			if p.err != nil {
				l.Error = p.err.Error()
			}
		}
		out.Links = append(out.Links, l)
	}
	encoded, err := json.Marshal(out)
	return &pb.NetResponse{Net: encoded}, fault.Wrap(fault.Corrupt, "server.Net", "", err)
}

func describe(p wire.Path) string {
	switch {
	case p.Local:
		return "local"
	case p.Via == "":
		return "direct"
	}
	return "via " + p.Via
}

type probed struct {
	rtts []time.Duration
	err  error
}

// targets are the other nodes named, or all.
func (s *Server) targets(only []string) []geoconfig.Node {
	return slices.DeleteFunc(s.directory.Nodes(), func(n geoconfig.Node) bool {
		return n.ID == s.id || len(only) > 0 && !slices.Contains(only, string(n.ID))
	})
}

// probeAll measures nodes so many times each.
func (s *Server) probeAll(ctx context.Context, times int, nodes []geoconfig.Node) map[ids.Node]probed {
	out := map[ids.Node]probed{}
	if times == 0 {
		return out
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	flight := make(chan struct{}, probeFlight)
	for _, n := range nodes {
		flight <- struct{}{}
		all.Go(func() {
			defer func() { <-flight }()
			var p probed
			limit, cancel := context.WithTimeout(ctx, probeLimit)
			defer cancel()
			for range times {
				rtt, err := s.host.Ping(limit, string(n.ID))
				if p.err = err; err != nil {
					break
				}
				p.rtts = append(p.rtts, rtt)
			}
			mu.Lock()
			defer mu.Unlock()
			out[n.ID] = p
		})
	}
	all.Wait()
	return out
}
