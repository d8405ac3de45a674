package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/admin"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/named"
	"cartwheel.dev/node/server/requests"
	"cartwheel.dev/node/server/sharing"
	"cartwheel.dev/node/server/usage"
	"cartwheel.dev/node/wire"
)

// handle registers everything that the node answers.
func (s *Server) handle() {
	h, a, isNode := s.net.host, s.answers.access, s.net.who.Node
	greeter := &requests.Greeter{Self: s.id, Site: s.config.Site, Cluster: s.Cluster, Clients: s.net.who,
		Session: s.config.Session, KeepAlive: s.answers.sessions.KeepAlive, Greet: s.net.stage.Greet}
	h.Inline(method.Hello, greeter.Hello)
	h.Inline(method.KeepAlive, greeter.Prolong)
	operations := s.newOperations()
	h.Inline(method.Operate, operations.Operate)
	sides := &requests.Sides{Operations: operations, Self: s.id, Site: ids.Site(s.config.Site), Operate: s.answers.side.Operate, Here: s.answers.side.Here}
	h.Spawn(method.Side, sides.Side)
	h.Spawn(method.SideCopy, requests.Node(isNode, func(ctx context.Context, req *pb.SideCopyRequest) (proto.Message, error) {
		return s.answers.side.Copy(ctx, req)
	}))
	creates := &requests.Creates{Operations: operations, Keep: s.answers.pending.Keep}
	h.Spawn(method.Hold, creates.Hold)
	frames := &requests.Frames{IsNode: isNode, Receive: s.loop.Receive, Logger: s.logger}
	h.Message(method.Replica, frames.Take)
	h.Message(method.Beacon, frames.Take)

	h.Spawn(method.Resolve, requests.Client(a, func(ctx context.Context, w *identity.Who, req *pb.ResolveRequest) (proto.Message, error) {
		return s.answers.reading.Resolve(ctx, a.Asker(w, req.Header), req)
	}))
	listing := &requests.Listing{Access: a, Page: s.answers.reading.List, Send: h.Send}
	h.Spawn(method.List, listing.List)
	h.Spawn(method.GetAttr, requests.Client(a, s.getAttr))
	h.Spawn(method.History, requests.Client(a, func(ctx context.Context, w *identity.Who, req *pb.HistoryRequest) (proto.Message, error) {
		return s.answers.reading.History(ctx, a.Asker(w, req.Header), req)
	}))
	reports, orders := s.newReports(), s.newOrders()
	h.Spawn(method.Statfs, requests.Client(a, reports.Statfs))
	h.Spawn(method.Place, requests.Client(a, s.slices.Place))
	h.Spawn(method.Rows, requests.Client(a, s.directory.Rows))
	h.Spawn(method.Claim, requests.Client(a, s.answers.locks.Claim))
	h.Inline(method.Lock, s.answers.locks.Set)

	shared := &requests.Shared{Access: a, Content: s.answers.content, Cache: s.answers.shared, Given: sharing.NewGiven(s.clock), Far: s.answers.cost.Far, Budget: s.budgets}
	chunks := &requests.Chunks{Self: s.id, Access: a, Content: s.answers.content, Reading: s.answers.reading, Row: s.directory.Slice, Shared: shared, Budget: s.budgets}
	h.Spawn(method.Have, chunks.Have)
	h.Spawn(method.Put, chunks.Put)
	h.Spawn(method.Get, chunks.Get)
	h.Spawn(method.Range, chunks.Range)
	h.Spawn(method.Files, chunks.Files)

	h.Spawn(method.Status, requests.Client(a, reports.Status))
	h.Spawn(method.SliceList, requests.Client(a, reports.SliceList))
	h.Spawn(method.Where, requests.Client(a, reports.Where))
	h.Spawn(method.Conflicts, requests.Client(a, reports.Conflicts))
	s.answers.teller = s.newTeller()
	h.Spawn(method.Space, requests.Client(a, s.answers.teller.Space))
	h.Spawn(method.Snapshots, requests.Client(a, orders.Snapshots))
	h.Spawn(method.Snapshot, requests.Client(a, orders.Snapshot))
	h.Spawn(method.HandOver, requests.Client(a, orders.HandOver))
	h.Spawn(method.Net, requests.Client(a, s.net.survey.Net))
	h.Spawn(method.DropCaches, requests.Client(a, orders.DropCaches))
	h.Spawn(method.Scrub, requests.Client(a, orders.StartScrub))
	h.Spawn(method.Drill, requests.Client(a, orders.Drill))
	h.Spawn(method.Drills, requests.Client(a, orders.Drills))
	h.Spawn(method.Recall, requests.Client(a, newMemory(s).Recall))

	h.Spawn(method.Intent, requests.Node(isNode, s.intents.Intent))
	h.Spawn(method.Facts, requests.Node(isNode, s.intents.Facts))
	h.Spawn(method.Transfer, s.sender.Send)
	h.Message(method.Budget, s.hearBudget)
}

// getAttr tells the attributes of an object, also as of the time of a snapshot.
func (s *Server) getAttr(ctx context.Context, w *identity.Who, req *pb.GetAttrRequest) (proto.Message, error) {
	root, err := nameTime(ctx, s.snapshots, req.Header)
	if err != nil {
		return nil, err
	}
	out, err := s.answers.reading.GetAttr(ctx, s.answers.access.Asker(w, req.Header), req)
	if err != nil {
		return nil, err
	}
	out.AsOfRoot = uint64(root)
	return out, nil
}

// nameTime puts the time of a snapshot where a request has its name. It returns the directory
// that the snapshot is of; 0: the whole tree.
func nameTime(ctx context.Context, list *named.List, h *pb.ReadHeader) (ids.Object, error) {
	name := h.GetAsOfName()
	if name == "" {
		return 0, nil
	}
	resume, err := wire.Yield(ctx)
	if err != nil {
		return 0, err
	}
	defer resume()
	found, err := list.Resolve(ctx, name)
	h.AsOf = uint64(found.Time)
	return found.Root, err
}

// hearBudget takes in another node's report.
func (s *Server) hearBudget(m wire.Message) {
	defer m.Payload.Release()
	if !s.net.who.IsNode(m.Peer) {
		return
	}
	var report pb.BudgetReport
	if err := proto.Unmarshal(m.Payload.Bytes(), &report); err != nil {
		s.logger.Warn("a frame of a peer makes no sense", logattr.Peer(m.Peer), logattr.Err(err))
		return
	}
	s.budgets.Hear(ids.Node(m.Peer), &report)
}

// newOperations makes what orders clients' and nodes' operations.
func (s *Server) newOperations() *requests.Operations {
	return &requests.Operations{
		Access: s.answers.access, Sharing: s.answers.sessions, Leases: s.answers.sessions, Intents: s.intents,
		Order: s.loop.Operate, MayCommit: s.answers.locks.MayCommit, Row: s.directory.Slice, Count: s.answers.cost.Count,
		HLC: s.hlc, Go: s.life.spawn,
	}
}

// newReports makes what tells people what the node knows.
func (s *Server) newReports() *admin.Reports {
	return admin.NewReports(admin.ReportsOptions{
		Self: s.id, Site: ids.Site(s.config.Site), Cluster: s.Cluster, Version: s.deps.Version, Loop: s.loop, Roster: s.directory,
		Store: s.store, Space: s.space, Host: s.net.host,
		Standing: admin.Standing{GeoConfig: s.geo, Away: s.directory.Away, Refused: s.directory.Refused,
			Generation: func() ids.Generation { return s.directory.Cluster().Generation }},
		Sessions: s.answers.sessions.Len, Clients: s.net.who.Clients, Findings: s.net.survey.Findings, Leading: s.leader.Slices, Waiting: s.answers.side.Waiting, Committed: s.committed,
		Reached: func(ctx context.Context, w *identity.Who, o ids.Object, ticket []byte) error {
			who := s.answers.access.Asker(w, nil)
			return s.answers.reading.Reached(ctx, &who, o, ticket)
		},
		Scrub: s.scrub.Report, Moved: s.budgets.Moved, Drill: s.net.stage.Report, Balance: s.giver.Report, Copies: s.driver.receiver.Report, ReserveBytes: s.config.ReserveBytes, Began: s.began, Clock: s.clock,
	})
}

// newTeller makes what tells what holds the space of the slices.
func (s *Server) newTeller() *usage.Teller {
	terms := retention(&s.config)
	return usage.New(usage.Options{
		Self: s.id, Row: s.directory.Slice, Committed: s.committed, Meta: s.store.Meta(), Length: s.store.Packs().Length,
		Has:   func(id ids.Slice) bool { return s.loop.Published(id) != nil },
		Floor: terms.Floor,
		HLC:   s.hlc,
	})
}

// newMemory makes what tells an administrator the node's copy of the configuration.
func newMemory(s *Server) *admin.Memory {
	return &admin.Memory{Self: s.id, Configuration: s.directory, Records: s.snapshots.Records, Store: s.geo, GeoConfig: s.config.GeoConfig, Logger: s.logger,
		Held: func(ctx context.Context) ([]geoconfig.SliceRow, error) { return admin.HeldRows(ctx, s.loop) }}
}

// newOrders makes what carries out the orders of administrators.
func (s *Server) newOrders() *admin.Orders {
	return &admin.Orders{
		Self: s.id, Row: s.directory.Slice, Changed: s.directory.Changed, Pass: s.leader.HandOver,
		Drop: func() {
			s.answers.content.Nodes.Drop()
			s.answers.shared.Drop()
			s.store.Meta().DropCache()
		},
		Scrub: s.scrub.Start, Apply: s.geo.Apply, Key: s.batchKey, Wall: s.wall, List: s.snapshots,
		Stage: s.net.stage, History: s.geo, FailedAfter: s.config.FailedAfter,
	}
}
