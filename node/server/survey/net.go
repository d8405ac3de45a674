package survey

import (
	"context"
	"encoding/json"
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
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

const (
	// maxProbes bounds the measurements of one request for each node, and
	// probeFlight the nodes that are measured at once.
	maxProbes   = 20
	probeFlight = 16
	// probeTimeout bounds all measurements of one node.
	probeTimeout = 3 * time.Second
)

// Net answers what the node knows of its distances, after measuring where the
// request asks for it. Quota: the user had too many round trips measured.
func (s *Surveyor) Net(ctx context.Context, w *identity.Who, req *pb.NetRequest) (proto.Message, error) {
	const op fault.Op = "survey.Net"
	times, targets := int(min(req.Probes, maxProbes)), s.targets(req.Nodes)
	if err := s.users.take(w, times*len(targets), s.o.Clock()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	out := status.Net{ID: s.o.Self, Site: s.o.Site, Published: status.Coordinate(s.published)}
	if s.at != 0 {
		out.PublishedNS = s.o.Clock() - s.at
	}
	s.mu.Unlock()
	probed := s.probeAll(ctx, times, targets)
	out.Coordinate = status.Coordinate(proximity.ForRow(s.o.Vicinity.Coordinate()))
	known := map[ids.Node]proximity.Link{}
	for _, l := range s.o.Vicinity.Links() {
		known[l.Node] = l
	}
	for _, n := range targets {
		k := known[n.ID]
		l := status.Link{To: n.ID, Site: n.Site, MeasuredNS: k.Smoothed, LeastNS: k.Least, Samples: k.Samples, AgeNS: k.Age, PredictedNS: k.Predicted}
		if path, up := s.o.Host.Path(string(n.ID)); up {
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
	return &pb.NetResponse{Net: encoded}, fault.Wrap(fault.Corrupt, op, "", err)
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

// probed is what the measurements of one node came to.
type probed struct {
	rtts []time.Duration
	err  error
}

// targets are the other nodes named, or all.
func (s *Surveyor) targets(only []string) []geoconfig.Node {
	return slices.DeleteFunc(s.o.Roster.Nodes(), func(n geoconfig.Node) bool {
		return n.ID == s.o.Self || len(only) > 0 && !slices.Contains(only, string(n.ID))
	})
}

// probeAll measures nodes so many times each.
func (s *Surveyor) probeAll(ctx context.Context, times int, nodes []geoconfig.Node) map[ids.Node]probed {
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
			limit, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			for range times {
				rtt, err := s.o.Host.Ping(limit, string(n.ID))
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
