package server

import (
	"context"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/advisory"
	"cartwheel.dev/node/server/budget"
	"cartwheel.dev/node/server/chunks"
	"cartwheel.dev/node/server/cost"
	"cartwheel.dev/node/server/creates"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/leases"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/server/sharing"
	"cartwheel.dev/node/server/side"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

const (
	// stagedLife is for how long a chunk counts at least that its user stored and
	// does not commit.
	stagedLife = time.Hour
	// nodesBytes bounds the manifests' nodes that are kept in memory.
	nodesBytes = 8 << 20
	// pendingCount and pendingBytes bound the creates that the node keeps for others'
	// slices; a client whose create finds no room waits for the log.
	pendingCount = 4096
	pendingBytes = 16 << 20
	// seenWithin bounds how long a read waits for creates that were answered.
	seenWithin = 10 * time.Second
)

// openAnswers makes the parts that answer requests beside the loop, or that it
// calls back. There is no loop yet: they ask for it when they need it.
func (s *Server) openAnswers() {
	a := &s.answers
	published := func(id ids.Slice) *operate.Published { return s.loop.Published(id) }
	a.cost = &cost.Counter{Self: s.id, Published: published,
		Far: func(peer string) bool { return s.net.who.IsElsewhere(peer, ids.Site(s.config.Site)) }}
	a.content = &chunks.Server{Self: string(s.id), Packs: s.store.Packs(), Nodes: chunks.NewNodes(s.store.Packs(), nodesBytes), Caller: s.net.host,
		Full: s.space.IsFull, Far: a.cost.Far, Staged: chunks.NewStaged(s.config.MaxUserStagedBytes, stagedLife, s.clock),
		Push: func(ctx context.Context, to, asker string, bytes int) error {
			return s.budgets.Push(ctx, to, asker, budget.Replication, bytes)
		}}
	a.shared = sharing.New(sharing.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Bytes: s.config.NeighbourCacheBytes, Roster: s.directory, Caller: s.net.host,
		Patient:  s.patient,
		Distance: func(to ids.Node) (time.Duration, bool) { return s.net.survey.Distance(s.id, to) }, Clock: s.clock, Go: s.life.spawn,
	})
	a.sessions = leases.New(leases.Options{
		Config: s.config.leases(), First: s.chance.Uint64(), Clock: s.clock, Caller: s.net.host, Logger: s.logger,
		Each:      func(f func(*operate.Published) bool) { s.loop.EachPublished(f) },
		Published: published, Ended: s.sessionEnded, Far: a.cost.Far,
	})
	tickets := &ticket.Sealer{Secret: func() string { return s.directory.Cluster().Secret }, Wall: s.wall}
	elsewhere := &reading.Remote{Self: s.id, Row: s.directory.Slice, Caller: s.net.host}
	a.reading = &reading.Server{
		Side:      func(id ids.Slice) tree.View { return s.answers.side.View(id) },
		Unmerged:  func(o ids.Object, names [][]byte) bool { return s.answers.side.Unmerged(o, names) },
		Published: published, Row: s.directory.Slice, Clock: s.clock, HLC: s.hlc, Leases: s.readers(),
		Tickets: tickets, Elsewhere: elsewhere.Attr, Committed: s.committed, Heard: s.heard,
		Past: reading.Past{
			View:     func(id ids.Slice, at hlc.Time) tree.View { return s.store.Meta().SliceAt(id, uint64(at)) },
			Versions: func(id ids.Slice) tree.Versions { return s.store.Meta().Slice(id).Versions },
			Close: func(ctx context.Context, id ids.Slice, at hlc.Time) error {
				return operate.CloseTime(ctx, s.loop, id, at)
			},
			Retention: s.config.Retention,
		},
	}
	a.access = &access.Control{Peers: s.net.who, Sessions: a.sessions, Tickets: tickets, Reading: a.reading}
	a.locks = advisory.New(advisory.Options{
		Self: s.id, Limits: s.config.locks(), Sessions: a.sessions, Reading: a.reading, Client: s.net.who.Client,
		Asker:     func(w *identity.Who) reading.Asker { return a.access.Asker(w, nil) },
		ClaimTime: s.config.Session, Clock: s.clock, Go: s.life.spawn,
	})
	a.holds = &advisory.Holds{
		Committed: s.committed, Leading: s.leading, Live: a.sessions.Live, Logger: s.logger,
		Propose: func(ctx context.Context, id ids.Slice, op *pb.Operation) (operate.Answer, error) {
			return operate.Propose(ctx, s.loop, id, op, 0, 0)
		},
	}
}

// openSide opens the side logs that the node keeps.
func (s *Server) openSide() (err error) {
	dir := "side"
	if s.sideFiles == nil {
		dir = filepath.Join(s.config.Data, dir)
	}
	a := &s.answers
	a.side, err = side.Open(side.Options{
		Self: s.id, Dir: dir, FS: s.sideFiles, Bytes: int(s.config.SideLogBytes),
		Published: func(id ids.Slice) *operate.Published { return s.loop.Published(id) }, Committed: s.committed, Row: s.directory.Slice,
		Nodes: a.content.Nodes, Chunks: s.store.Packs(), Caller: s.net.host,
		Distance: func(to ids.Node) (time.Duration, bool) { return s.net.survey.Distance(s.id, to) },
		Propose: func(ctx context.Context, id ids.Slice, op *pb.Operation, body []byte) (operate.Answer, error) {
			return s.newOperations().Merge(ctx, &operate.Operation{Slice: id, Op: op, Body: body})
		},
		Feature: func(n ids.Node) int {
			if row, known := s.directory.Node(n); known {
				return row.Feature
			}
			return version.Feature // a node that was removed reads no records any more
		},
		AdoptAfter: s.config.FailedAfter, Clock: s.clock, HLC: s.hlc, Random: s.chance.Uint64, Logger: s.logger,
	})
	return err
}

// openPending opens the creates that the node keeps as a standby.
func (s *Server) openPending() (err error) {
	dir := "pending"
	if s.sideFiles == nil {
		dir = filepath.Join(s.config.Data, dir)
	}
	s.answers.pending, err = creates.Open(creates.Options{
		Self: s.id, Dir: dir, FS: s.sideFiles, Count: pendingCount, Bytes: pendingBytes,
		Published: func(id ids.Slice) *operate.Published { return s.loop.Published(id) }, Row: s.directory.Slice, Caller: s.net.host,
		Order: func(ctx context.Context, op *operate.Operation) (operate.Answer, error) {
			return s.newOperations().Complete(ctx, op)
		},
		Clock: s.clock, Logger: s.logger,
	})
	return err
}

// readers are the sessions as those see them who read names: what was answered shows.
type readers struct {
	*leases.Sessions
	seen func(ctx context.Context, dirs ...ids.Object) error
}

// Shared implements reading.Leases and intents.Sessions.
func (r readers) Shared(ctx context.Context, session uint64, dirs ...ids.Object) (end func(), err error) {
	end, err = r.Sessions.Shared(ctx, session, dirs...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	if err := r.seen(ctx, dirs...); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// readers returns the sessions for those who read names.
func (s *Server) readers() readers {
	return readers{s.answers.sessions, func(ctx context.Context, dirs ...ids.Object) error { return s.loop.AwaitSeen(ctx, dirs...) }}
}

// patient returns a context for one call for content.
func (s *Server) patient(ctx context.Context, peer string, stall, most time.Duration) (context.Context, context.CancelFunc) {
	return wire.Patient(ctx, s.net.host, peer, wire.Chunk, stall, most)
}

// sessionEnded drops what a client had under a session: its locks, and its open
// files where it has no other session here.
func (s *Server) sessionEnded(client, session uint64) {
	s.answers.locks.EndSession(client, session)
	if s.answers.sessions.Live(client) {
		return
	}
	s.life.spawn(func(ctx context.Context) { s.answers.holds.ReleaseAll(ctx, client) })
}
