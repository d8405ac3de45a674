// Package survey keeps a node's place known: its network coordinate in its row
// and at its peers, what it measured of the other nodes, and the audit of the
// sites that follows from that. Package proximity does the measuring and
// predicting, package audit the judging; this one asks them in time and tells
// the others. A Surveyor is safe for concurrent use.
package survey

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/proximity"
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

// Roster lists the cluster's nodes.
type Roster interface {
	Node(ids.Node) (geoconfig.Node, bool)
	Nodes() []geoconfig.Node
}

// Host is what the surveyor asks of the node's connections.
type Host interface {
	SetCoordinate(wire.Coordinate)
	Path(peer string) (wire.Path, bool)
	Ping(ctx context.Context, peer string) (time.Duration, error)
	Call(ctx context.Context, peer string, class wire.Class, m wire.Method, request proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error)
}

// Options are what a Surveyor is made of. Every field is needed.
type Options struct {
	Self     ids.Node
	Site     ids.Site
	Vicinity *proximity.Vicinity
	Roster   Roster
	Host     Host
	// Spread is how far apart the nodes of one site may be.
	Spread time.Duration
	// Apply writes to the configuration, Key names a batch of some kind.
	Apply func(context.Context, geoconfig.Batch) (ids.Revision, error)
	Key   func(kind string) string
	// Refresh writes the node's row anew, which FillRow helps to make.
	Refresh func(context.Context)
	Clock   func() time.Duration
	Wall    func() time.Time
	Logger  *slog.Logger
}

// Surveyor owns what the node knows of distances, and what it last published
// of them.
type Surveyor struct {
	o        Options
	users    quota
	measured measurements // for choices that last

	mu        sync.Mutex // guards below
	found     []status.Finding
	published geoconfig.Coordinate
	at        time.Duration // when that was; 0: not in this life
}

// New returns a surveyor that has published nothing yet.
func New(o Options) *Surveyor { return &Surveyor{o: o} }

// Sample takes in a round trip to another node, measured on a connection.
func (s *Surveyor) Sample(node ids.Node, rtt time.Duration, at *wire.Coordinate) {
	s.o.Vicinity.Sample(node, rtt, at)
}

// Run keeps the node's coordinate where its peers and the configuration see it,
// and audits the sites, until ctx ends. Every node keeps connections to all
// others, and their heartbeats measure; a neighbour that is not connected is
// tried by the host itself.
func (s *Surveyor) Run(ctx context.Context) {
	if row, ok := s.o.Roster.Node(s.o.Self); ok {
		s.o.Vicinity.Restore(row.Coordinate)
		s.mu.Lock()
		s.published = row.Coordinate
		s.mu.Unlock()
	}
	tick := time.NewTicker(surveyEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		for _, row := range s.o.Roster.Nodes() {
			if row.ID != s.o.Self {
				s.o.Vicinity.Place(row.ID, row.Coordinate)
				s.o.Vicinity.Declare(row.ID, row.Site, row.Apart)
			}
		}
		s.o.Host.SetCoordinate(proximity.ForWire(s.o.Vicinity.Coordinate()))
		changed := false
		if n%int(auditEvery/surveyEvery) == 0 {
			s.o.Vicinity.Keep(func(id ids.Node) bool { _, ok := s.o.Roster.Node(id); return ok })
			changed = s.auditSites(ctx)
		}
		if s.publish() || changed {
			s.o.Refresh(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// publish decides whether the coordinate in the node's row should change.
func (s *Surveyor) publish() bool {
	c := s.o.Vicinity.Coordinate()
	now := s.o.Clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !worthPublishing(s.published, proximity.ForRow(c)) || s.at != 0 && now-s.at < publishEvery {
		return false
	}
	s.published, s.at = proximity.ForRow(c), now
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

// FillRow puts into the node's row where it is, and which nodes the audit found
// elsewhere than they are said to be.
func (s *Surveyor) FillRow(row *geoconfig.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.published.Vector) > 0 {
		row.Coordinate = s.published
	}
	row.Together, row.Apart = nil, nil
	for _, f := range s.found {
		list := &row.Together
		if f.Kind == status.SiteApart {
			list = &row.Apart
		}
		if len(*list) < geoconfig.MaxNeighbours {
			*list = append(*list, f.Other)
		}
	}
}

// Findings returns what the audit found last.
func (s *Surveyor) Findings() []status.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.found)
}
