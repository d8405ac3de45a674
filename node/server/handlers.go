package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/requests"
)

// handle registers everything that the node answers.
func (s *Server) handle() {
	h, a, peer := s.net.host, s.answers.access, s.net.who.Node
	greeter := &requests.Greeter{Self: s.id, Site: s.config.Site, Cluster: s.Cluster, Clients: s.net.who,
		Session: s.config.Session, KeepAlive: s.answers.sessions.KeepAlive}
	h.Inline(method.Hello, greeter.Hello)
	h.Inline(method.KeepAlive, greeter.Prolong)
	h.Inline(method.Operate, s.operations().Operate)
	frames := &requests.Frames{IsNode: peer, Receive: s.loop.Receive, Logger: s.log}
	h.Message(method.Replica, frames.Take)
	h.Message(method.Beacon, frames.Take)

	h.Spawn(method.Resolve, requests.Client(a, func(ctx context.Context, w *identity.Who, req *pb.ResolveRequest) (proto.Message, error) {
		return s.answers.reading.Resolve(ctx, a.Asker(w, req.Header), req)
	}))
	listing := &requests.Listing{Access: a, Page: s.answers.reading.List, Send: h.Send}
	h.Spawn(method.List, listing.List)
	h.Spawn(method.GetAttr, requests.Client(a, func(ctx context.Context, w *identity.Who, req *pb.GetAttrRequest) (proto.Message, error) {
		return s.answers.reading.GetAttr(ctx, a.Asker(w, req.Header), req)
	}))
	reports, orders := s.newReports(), s.newOrders()
	h.Spawn(method.Statfs, requests.Client(a, reports.Statfs))
	h.Spawn(method.Place, requests.Client(a, s.slices.Place))
	h.Spawn(method.Rows, requests.Client(a, s.directory.Rows))
	h.Spawn(method.Claim, requests.Client(a, s.answers.locks.Claim))
	h.Inline(method.Lock, s.answers.locks.Set)

	chunks := &requests.Chunks{Self: s.id, Access: a, Content: s.answers.content, Reading: s.answers.reading, Row: s.directory.Slice}
	h.Spawn(method.Have, chunks.Have)
	h.Spawn(method.Put, chunks.Put)
	h.Spawn(method.Get, chunks.Get)
	h.Spawn(method.Range, chunks.Range)
	h.Spawn(method.Files, chunks.Files)

	h.Spawn(method.Status, requests.Client(a, reports.Status))
	h.Spawn(method.SliceList, requests.Client(a, reports.SliceList))
	h.Spawn(method.Where, requests.Client(a, reports.Where))
	h.Spawn(method.HandOver, requests.Client(a, orders.HandOver))
	h.Spawn(method.Net, requests.Client(a, s.net.survey.Net))
	h.Spawn(method.DropCaches, requests.Client(a, orders.DropCaches))

	h.Spawn(method.Intent, requests.Node(peer, s.intents.Intent))
	h.Spawn(method.Facts, requests.Node(peer, s.intents.Facts))
	h.Spawn(method.Transfer, s.sender.Send)
}

// operations makes what orders clients' and nodes' operations.
func (s *Server) operations() *requests.Operations {
	return &requests.Operations{
		Access: s.answers.access, Sharing: s.answers.sessions, Leases: s.answers.sessions, Intents: s.intents, Order: s.loop.Operate, MayCommit: s.answers.locks.MayCommit,
		Row: s.directory.Slice, Count: s.answers.cost.Count, HLC: s.hlc, Go: s.life.spawn,
	}
}
