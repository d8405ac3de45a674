package server

import (
	"context"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/admin"
	"cartwheel.dev/node/server/advisory"
	"cartwheel.dev/node/server/allocation"
	"cartwheel.dev/node/server/failback"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/intents"
	"cartwheel.dev/node/server/leadership"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/server/snapshot"
	"cartwheel.dev/node/server/upkeep"
	"cartwheel.dev/node/server/watchdog"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// openAnswers makes the parts that the loop calls back or that answer requests
// beside it.
func (s *Server) openAnswers() {
	elsewhere := &reading.Remote{Self: s.id, Row: s.directory.Slice, Caller: s.host}
	s.reading = &reading.Server{
		Published: func(id ids.Slice) *operate.Published { return s.loop.Published(id) },
		Row:       s.directory.Slice, Clock: s.clock, HLC: s.hlc, Leases: s.sessions,
		Tickets: s.tickets, Elsewhere: elsewhere.Attr, Committed: s.committed,
	}
	s.access = &access.Control{Peers: s.who, Sessions: s.sessions, Tickets: s.tickets, Reading: s.reading}
	s.locks = advisory.New(advisory.Options{
		Self: s.id, Limits: s.config.locks(), Sessions: s.sessions, Reading: s.reading, Client: s.who.Client,
		Asker:     func(w *identity.Who) reading.Asker { return s.access.Asker(w, nil) },
		ClaimTime: s.config.Session, Clock: s.clock, Go: s.life.spawn,
	})
	s.fetcher = snapshot.NewFetcher(snapshot.FetcherOptions{
		Self: s.id, Row: s.directory.Slice, Host: s.host, Packs: s.store.Packs(), Clock: s.clock, Logger: s.log,
	})
	s.holds = &advisory.Holds{
		Committed: s.committed, Leading: s.leading, Live: s.sessions.Live, Logger: s.log,
		Propose: func(ctx context.Context, id ids.Slice, op *pb.Operation) (operate.Answer, error) {
			return operate.Propose(ctx, s.loop, id, op, 0, 0)
		},
	}
}

// sessionEnded drops what a client had under a session: its locks, and its open
// files where it has no other session here.
func (s *Server) sessionEnded(client, session uint64) {
	s.locks.EndSession(client, session)
	if s.sessions.Live(client) {
		return
	}
	s.life.spawn(func(ctx context.Context) { s.holds.ReleaseAll(ctx, client) })
}

// committed is what this node's own copy of a slice shows.
func (s *Server) committed(id ids.Slice) tree.View { return operate.Committed(s.store.Meta(), id) }

// leading lists the rows of the slices that this node acts for.
func (s *Server) leading() []geoconfig.SliceRow { return s.leader.Slices() }

// newLeader makes what acts for the node's slices.
func (s *Server) newLeader() *leadership.Leader {
	return leadership.New(leadership.Options{
		Self: s.id, Loop: s.loop, Roster: s.directory,
		Connected: func(id ids.Node) bool { return s.host.Connected(string(id), wire.Operation) },
		Committed: s.committed, Resume: func(id ids.Slice) { s.intents.Resume(id) }, ReleaseAbsent: s.holds.ReleaseAbsent,
		Lease: s.config.Lease, Session: s.config.Session, Clock: s.clock, Wall: s.deps.Wall, Logger: s.log,
	})
}

// openRunners makes the parts that act on their own.
func (s *Server) openRunners() {
	s.slices = allocation.New(allocation.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Roster: s.directory, Sites: s.directory.Sites,
		Generation: func() ids.Generation { return s.directory.Cluster().Generation },
		Connected:  func(id ids.Node) bool { return s.host.Connected(string(id), wire.Beacon) },
		Distance:   s.survey.Distance,
		Returns:    func(id ids.Slice) bool { return s.strays.Returns(id, s.clock()) },
		Serves:     s.Serves, Apply: s.geo.Apply, Key: s.batchKey, Learn: s.directory.Learn,
		ExpectedNodes: s.config.ExpectedNodes, MaxNewSlices: s.config.MaxNewSlices, LeaderTimeout: s.config.Lease,
		Clock: s.clock, Wall: s.deps.Wall, Random: s.chance.Uint64, Logger: s.log,
	})
	s.intents = intents.New(intents.Options{
		Self: s.id, Loop: s.loop, Host: s.host, Sessions: s.sessions, Cost: s.cost, Committed: s.committed, Row: s.directory.Slice,
		Propose: func(ctx context.Context, id ids.Slice, op *pb.Operation, client, number uint64) (operate.Answer, error) {
			return operate.Propose(ctx, s.loop, id, op, client, number)
		},
		Leading: s.leader.Slices, StepTimeout: s.deps.StepTimeout, Clock: s.clock, Wall: s.deps.Wall, HLC: s.hlc, Random: s.chance.Uint64,
		Go: s.life.spawn, Logger: s.log,
	})
}

// newReports makes what tells people what the node knows.
func (s *Server) newReports() *admin.Reports {
	return admin.NewReports(admin.ReportsOptions{
		Self: s.id, Site: ids.Site(s.config.Site), Cluster: s.Cluster, Version: s.deps.Version, Loop: s.loop, Roster: s.directory,
		Store: s.store, Space: s.space, Host: s.host, GeoConfig: s.geo, Away: s.directory.Away,
		Sessions: s.sessions.Len, Findings: s.survey.Findings, Leading: s.leader.Slices, Committed: s.committed,
		Reached: func(ctx context.Context, w *identity.Who, o ids.Object, ticket []byte) error {
			who := s.access.Asker(w, nil)
			return s.reading.Reached(ctx, &who, o, ticket)
		},
		ReserveBytes: s.config.ReserveBytes, Began: s.began, Clock: s.clock,
	})
}

// newOrders makes what carries out the orders of administrators.
func (s *Server) newOrders() *admin.Orders {
	return &admin.Orders{
		Self: s.id, Row: s.directory.Slice, Changed: s.directory.Changed, Pass: s.leader.HandOver,
		Drop: func() {
			s.content.Nodes.Drop()
			s.store.Meta().DropCache()
		},
		Apply: s.geo.Apply, Key: s.batchKey, Wall: s.deps.Wall,
	}
}

// newWatchdog makes what ends the node once its disk does not answer.
func (s *Server) newWatchdog() *watchdog.Dog {
	return watchdog.New(watchdog.Options{After: s.deps.StallAfter, Data: s.config.Data, Progress: s.loop.Progress,
		IsFull: func() bool { return s.store.Room(0) != nil }, Fail: s.fail})
}

// newKeeper makes what looks after a node's part.
func newKeeper(s *Server) *upkeep.Keeper {
	home := failback.New(failback.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Leading: s.leader.Slices, Row: s.directory.Slice, Node: s.directory.Node,
		Connected: func(id ids.Node) bool { return s.host.Connected(string(id), wire.Operation) },
		HandOver:  s.leader.HandOver, Clock: s.clock, Logger: s.log,
	})
	return upkeep.New(upkeep.Options{
		Self: s.id, Loop: s.loop, Ledger: s.ledger, NeedsCheckpoint: s.store.NeedsCheckpoint, Roster: s.directory, Slices: s.slices,
		Leading: s.leader.Slices, Distance: s.survey.Distance, Committed: s.committed, FailBack: home.Step, Refresh: s.registrar.Refresh,
		MaxSliceObjects: s.config.MaxSliceObjects, FailedAfter: s.config.FailedAfter, Clock: s.clock, Logger: s.log,
	})
}
