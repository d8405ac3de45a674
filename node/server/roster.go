package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

// roster is what this node did about the rows of nodes and users.
type roster struct {
	mu  sync.Mutex // guards met
	met map[ids.Node]bool

	ahead   atomic.Int64  // clock: when a peer's clock was last complained of; 0: never
	skipped atomic.Uint64 // complaints since
}

// admit says for whom a peer acts, once it may do more than say hello.
func (s *Server) admit(peer string) (account string, ok bool) {
	if !s.serving.Load() {
		return "", false
	}
	return s.who.Admit(peer)
}

// meet tells the host where the other nodes are, keeps connections up, and cuts
// those to nodes that are not on the roster any more.
func (s *Server) meet() {
	s.roster.mu.Lock()
	defer s.roster.mu.Unlock()
	before := s.roster.met
	s.roster.met = map[ids.Node]bool{}
	for _, n := range s.directory.Nodes() {
		if n.ID == s.id {
			continue
		}
		s.roster.met[n.ID] = true
		err := s.host.AddPeer(string(n.ID), n.Addresses)
		if err == nil {
			err = s.host.Keep(string(n.ID), true)
		}
		if err != nil {
			s.log.Warn("a node's row names no usable address", "peer", n.ID, "error", err)
		}
	}
	for id := range before {
		if s.roster.met[id] {
			continue
		}
		s.log.Info("a node left the roster", "peer", id)
		if err := s.host.Forget(string(id)); err != nil {
			s.log.Warn("a node that left cannot be forgotten", "peer", id, "error", err)
		}
	}
}

// recheck cuts the peers that the roster does not name any more.
func (s *Server) recheck() {
	if s.serving.Load() {
		s.who.Recheck()
		s.host.Recheck()
	}
}

// sampled takes in a round trip to a peer. Clients do not count: nothing is
// sent by way of them, and nobody knows them to be honest.
func (s *Server) sampled(peer string, rtt time.Duration, at *wire.Coordinate) {
	if s.serving.Load() && s.who.IsNode(peer) {
		s.survey.Sample(ids.Node(peer), rtt, at)
	}
}

// relays lists the nodes over which another one may be reached.
func (s *Server) relays(_ context.Context, to string) []string {
	if !s.serving.Load() {
		return nil
	}
	return s.survey.Relays(to)
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

// aheadEvery is the least time between two complaints of peers' clocks.
const aheadEvery = time.Minute

// observe takes the stamp of a peer's frame in. Any client may send one that is
// too far ahead with each frame: the log has a line in a minute.
func (s *Server) observe(peer string, stamp uint64) {
	err := s.hlc.Observe(hlc.Time(stamp))
	if err == nil {
		return
	}
	now, last := int64(s.clock()), s.roster.ahead.Load()
	if last != 0 && now-last < int64(aheadEvery) || !s.roster.ahead.CompareAndSwap(last, now) {
		s.roster.skipped.Add(1)
		return
	}
	s.log.Warn("a peer's clock is ahead", "peer", peer, "error", err, "more", s.roster.skipped.Swap(0))
}

// record writes into the audit log that a user ordered something. What cannot
// be recorded is not done.
func (s *Server) record(ctx context.Context, w *identity.Who, action, subject, detail string) error {
	_, err := s.geo.Apply(ctx, geoconfig.Batch{Key: s.batchKey("order"), Audit: []geoconfig.AuditRecord{{
		AtNS: s.deps.Wall().UnixNano(), Who: string(w.User), Action: action, Subject: subject, Detail: detail}}})
	if err != nil {
		return &fault.Error{Kind: fault.KindOf(err), Op: "server.record", Subject: subject, Cause: err,
			Public: "the audit log cannot be written, so this is not done: is geo-config there?"}
	}
	return nil
}

// learn passes newer slice rows on to the core.
func (s *Server) learn(rows []geoconfig.SliceRow) {
	for _, row := range rows {
		s.strays.Note(row, s.clock(), s.siteOf)
	}
	if s.serving.Load() { // what came before, openServices passes on
		s.loop.Learn(rows)
	}
}

// connected passes connections' comings and goings on to the core.
func (s *Server) connected(peer string, class wire.Class, up bool) {
	if class != wire.Operation || !s.serving.Load() {
		return
	}
	id := ids.Node(peer)
	if !s.who.IsNode(peer) {
		if !up {
			s.who.Forget(peer)
		}
		return
	}
	s.loop.Do(func(core *replica.Node, now replica.Time) {
		if up {
			core.PeerUp(now, id)
		} else {
			core.PeerDown(now, id)
		}
	})
}
