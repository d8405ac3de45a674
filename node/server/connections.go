package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/server/budget"
	"cartwheel.dev/node/server/cluster"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/named"
	"cartwheel.dev/node/server/outage"
	"cartwheel.dev/node/server/peers"
	"cartwheel.dev/node/server/registration"
	"cartwheel.dev/node/server/survey"
	"cartwheel.dev/node/wire"
)

// configurationFile keeps the cluster's configuration beside the data.
const configurationFile = "configuration.json"

// snapshotsFile keeps the list of snapshots there.
const snapshotsFile = "snapshots.json"

// openConfiguration makes the host and reads the cluster's configuration, from
// the store or, if that is away, from beside the data.
func (s *Server) openConfiguration(ctx context.Context) error {
	const op fault.Op = "server.openConfiguration"
	if err := os.MkdirAll(s.config.Data, 0o700); err != nil {
		return &fault.Error{Kind: fault.Permission, Op: op, Subject: s.config.Data, Public: "the data directory cannot be made", Cause: err}
	}
	vicinity, err := proximity.New(s.clock, s.chance)
	if err != nil {
		return err
	}
	vicinity.Here(ids.Site(s.config.Site))
	if err := s.openHost(); err != nil {
		return err
	}
	store, err := s.deps.Store(s.net.host)
	if err != nil {
		return err
	}
	s.geo = s.net.stage.Store(store)
	s.directory, err = cluster.New(cluster.Options{
		Store: s.geo, File: filepath.Join(s.config.Data, configurationFile), Logger: s.logger,
		Slices: s.learn, Nodes: s.meet, Users: s.net.gate.Recheck,
	})
	if err != nil {
		return err
	}
	if err := s.awaitCluster(ctx); err != nil {
		return err
	}
	joined := s.directory.Cluster()
	if err := registration.CheckFeature(&joined, s.deps.Feature); err != nil {
		return err
	}
	s.net.registrar = registration.New(registration.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Store: s.geo, Roster: s.directory, Describe: s.describe, Feature: s.deps.Feature, Key: s.batchKey, Logger: s.logger,
	})
	s.net.survey = survey.New(survey.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Vicinity: vicinity, Roster: s.directory, Host: s.net.host, Spread: s.config.SiteSpread,
		Apply: s.geo.Apply, Key: s.batchKey, Refresh: s.net.registrar.Refresh, Clock: s.clock, Wall: s.wall, Logger: s.logger,
	})
	s.net.who = identity.New(string(s.id), s.directory)
	s.budgets = budget.New(budget.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Roster: s.directory, Host: s.net.host, SiteOf: s.net.who.SiteOf,
		SignLife: func(peer string) int { return wire.SignLife(s.net.host, peer, wire.Chunk) },
		Clock:    s.clock, Wall: s.wall, Logger: s.logger,
	})
	s.snapshots, err = named.New(named.Options{
		Store: s.geo, File: filepath.Join(s.config.Data, snapshotsFile),
		Key: s.batchKey, Vouched: s.net.stamps.Vouched, HLC: s.hlc, Lease: s.config.Lease, Clock: s.clock, Wall: s.wall, Logger: s.logger,
	})
	return err
}

// openHost makes the node's connections. They call the gate back, which is shut
// yet.
func (s *Server) openHost() error {
	s.net.stage = outage.New(outage.Options{
		Self: s.id, Site: ids.Site(s.config.Site), SiteOf: s.net.siteOf, Recheck: func() { s.net.host.Recheck() }, Clock: s.clock, Logger: s.logger,
	})
	s.net.stamps = &peers.Stamps{HLC: s.hlc, Clock: s.clock, Logger: s.logger}
	var counted func(wire.Method, time.Duration, fault.Kind)
	if m := s.deps.Metrics; m != nil {
		counted = m.Requests().Answered
	}
	host, err := wire.New(wire.Options{
		Key: s.deps.Key, Listen: s.config.Listen, Limits: s.config.limits(), Times: s.deps.Times, Logger: s.logger,
		Gater:     s.net.stage.Admit,
		Inner:     func(peer string) bool { return s.net.who.IsNode(peer) },
		HLC:       func() uint64 { return uint64(s.hlc.Last()) },
		OnHLC:     s.net.stamps.Observe,
		OnAnswer:  counted,
		Tracer:    s.deps.Tracer,
		OnConnect: s.net.gate.Connected,
		OnSample:  s.net.gate.Sampled,
		ReadsWide: s.readsWide,
		Relays:    s.net.gate.Relays,
		Admit:     s.net.gate.Admit,
		Hello:     method.Hello,
		MayRelay:  s.net.gate.MayRelay,
		Network:   s.deps.Network,
	})
	if err != nil {
		return err
	}
	s.net.host = host
	s.net.contacts = &peers.Contacts{Self: s.id, Host: host, Logger: s.logger}
	s.net.endpoint = &registration.Endpoint{Self: s.id, Host: host, Data: s.config.Data, Socket: s.config.Socket,
		Advertise: s.config.Advertise, Logger: s.logger}
	return nil
}

// siteOf returns where a peer stands, empty where that is not known yet.
func (c *connections) siteOf(peer string) ids.Site {
	if !c.gate.IsOpen() {
		return ""
	}
	return c.who.SiteOf(peer)
}

// readsWide reports whether a node's row says that its program reads coordinates
// of more than two dimensions.
func (s *Server) readsWide(peer string) bool {
	if !s.net.gate.IsOpen() {
		return false // there is no directory yet
	}
	row, ok := s.directory.Node(ids.Node(peer))
	return ok && row.Feature >= version.WideCoordinates
}

const (
	// awayTimeout is how long a start that could do without the configuration
	// store waits for it.
	awayTimeout = 2 * time.Second
	// refusedTimeout is for how long the geo-config server must refuse this node
	// until the start fails: its row may just be on the way.
	refusedTimeout = 3 * time.Second
	// awaitEvery is the pause before a start asks the configuration store again.
	awaitEvery = 200 * time.Millisecond
)

// awaitCluster returns once it is known which cluster this is.
func (s *Server) awaitCluster(ctx context.Context) error {
	const op fault.Op = "server.awaitCluster"
	var refused time.Duration // since when, by the clock; 0: it is not
	for {
		try, cancel := context.WithTimeout(ctx, awayTimeout)
		err := s.directory.Refresh(try)
		cancel()
		switch now := s.clock(); {
		case !wire.Refused(err):
			if s.directory.Cluster().ID != "" {
				return nil // if the store is away, what is beside the data will do
			}
			if !fault.Is(err, fault.TimedOut) { // a busy server may be late to refuse
				refused = 0
			}
		case refused == 0:
			refused = now
		case now-refused > refusedTimeout:
			return &fault.Error{Kind: fault.Unauthorized, Op: op, Subject: string(s.id), Cause: err,
				Public: "the geo-config server does not know this node: add a row with this ID to the nodes first, or start it with the key that has one"}
		}
		if err == nil {
			err = fault.E(fault.NotFound, op, "geo-config", "it knows of no cluster yet")
		}
		select {
		case <-ctx.Done():
			return &fault.Error{Kind: fault.Unreachable, Op: op, Subject: fmt.Sprint(s.config.GeoConfig),
				Public: "the geo-config server does not answer: check its address and that it runs", Cause: err}
		case <-time.After(awaitEvery):
		}
	}
}

// meet connects the node to those of the roster.
func (s *Server) meet() { s.net.contacts.Update(s.directory.Nodes()) }

// describe puts into the node's row what it says of itself.
func (s *Server) describe(n *geoconfig.Node) {
	usage := s.store.Usage()
	n.Addresses = s.net.endpoint.Advertised()
	n.Incarnation, n.Version = s.store.Incarnation(), s.deps.Version
	n.CapacityBytes = s.space.Capacity(usage)
	n.UsedBytes = n.CapacityBytes - max(s.space.Free(usage), 0)
	s.net.survey.FillRow(n)
	s.giver.FillRow(n)
}

// learn takes in slice rows that are newer than what was known.
func (s *Server) learn(rows []geoconfig.SliceRow) {
	siteOf := func(id ids.Node) ids.Site {
		n, _ := s.directory.Node(id)
		return n.Site
	}
	for _, row := range rows {
		s.strays.Note(row, s.clock(), siteOf)
		s.losses.Note(&row, s.clock())
	}
	s.net.gate.Learn(rows) // openServices passes on what comes before that is open
}
