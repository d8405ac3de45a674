package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/chunks"
	"cartwheel.dev/node/server/cluster"
	"cartwheel.dev/node/server/cost"
	"cartwheel.dev/node/server/diskspace"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/leases"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/peers"
	"cartwheel.dev/node/server/registration"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/server/rowcas"
	"cartwheel.dev/node/server/snapshot"
	"cartwheel.dev/node/server/survey"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/wire"
)

// configurationFile keeps the cluster's configuration beside the data.
const configurationFile = "configuration.json"

// Open starts a node and returns when it serves. The context bounds the start
// alone.
func Open(ctx context.Context, c Config, d Deps) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	d = d.withDefaults()
	s := &Server{config: c, deps: d, id: ids.Node(d.Key.KeyID()), clock: d.Clock, hlc: hlc.New(d.Wall),
		boot:   d.Random.Uint64(),
		chance: &source{rand: d.Random}}
	s.log = d.Logger.With("node", shortID(s.id))
	s.began = s.clock()
	s.life.init()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start brings the node up, step by step; close takes down what there is.
func (s *Server) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.openConfiguration, s.openStore, s.openLoop, s.openServices, s.listen, s.register,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	s.life.spawn(s.directory.Run)
	s.life.spawn(s.newWatchdog().Run)
	s.life.spawn(s.space.Run)
	s.life.spawn(newKeeper(s).Run)
	s.life.spawn(s.survey.Run)
	return nil
}

// openConfiguration makes the host and reads the cluster's configuration, from
// the store or, if that is away, from beside the data.
func (s *Server) openConfiguration(ctx context.Context) error {
	const op fault.Op = "server.Open"
	if err := os.MkdirAll(s.config.Data, 0o700); err != nil {
		return &fault.Error{Kind: fault.Permission, Op: op, Subject: s.config.Data, Public: "the data directory cannot be made", Cause: err}
	}
	vicinity, err := proximity.New(s.clock, s.chance)
	if err != nil {
		return err
	}
	vicinity.Here(ids.Site(s.config.Site))
	s.stamps = &peers.Stamps{HLC: s.hlc, Clock: s.clock, Logger: s.log}
	host, err := wire.New(wire.Options{
		Key: s.deps.Key, Listen: s.config.Listen, Limits: s.config.limits(), Times: s.deps.Times, Logger: s.log,
		Inner:     func(peer string) bool { return s.who.IsNode(peer) },
		HLC:       func() uint64 { return uint64(s.hlc.Last()) },
		OnHLC:     s.stamps.Observe,
		OnConnect: s.gate.Connected,
		OnSample:  s.gate.Sampled,
		Relays:    s.gate.Relays,
		Admit:     s.gate.Admit,
		Hello:     method.Hello,
		MayRelay:  s.gate.MayRelay,
		Network:   s.deps.Network,
	})
	if err != nil {
		return err
	}
	s.host = host
	contacts := &peers.Contacts{Self: s.id, Host: host, Logger: s.log}
	s.meet = func() { contacts.Update(s.directory.Nodes()) }
	s.endpoint = &registration.Endpoint{Self: s.id, Host: host, Data: s.config.Data, Socket: s.config.Socket, Advertise: s.config.Advertise, Logger: s.log}
	if s.geo, err = s.deps.Store(host); err != nil {
		return err
	}
	s.directory, err = cluster.New(cluster.Options{
		Store: s.geo, File: filepath.Join(s.config.Data, configurationFile), Logger: s.log,
		Slices: s.learn, Nodes: s.meet, Users: s.gate.Recheck,
	})
	if err != nil {
		return err
	}
	if err := s.awaitCluster(ctx); err != nil {
		return err
	}
	s.registrar = registration.New(registration.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Store: s.geo, Roster: s.directory, Describe: s.describe, Key: s.batchKey, Logger: s.log,
	})
	s.survey = survey.New(survey.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Vicinity: vicinity, Roster: s.directory, Host: host, Spread: s.config.SiteSpread,
		Apply: s.geo.Apply, Key: s.batchKey, Refresh: s.registrar.Refresh, Clock: s.clock, Wall: s.deps.Wall, Logger: s.log,
	})
	s.who = identity.New(string(s.id), s.directory)
	s.tickets = &ticket.Sealer{Secret: func() string { return s.directory.Cluster().Secret }, Wall: s.deps.Wall}
	return nil
}

// awayPatience is how long a start that could do without the configuration
// store waits for it.
const awayPatience = 2 * time.Second

// rosterPatience is for how long the geo-config server must refuse this node
// until the start fails: its row may just be on the way.
const rosterPatience = 3 * time.Second

// awaitCluster returns once it is known which cluster this is.
func (s *Server) awaitCluster(ctx context.Context) error {
	const op fault.Op = "server.Open"
	var refused time.Duration // since when, by the clock; 0: it is not
	for {
		try, cancel := context.WithTimeout(ctx, awayPatience)
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
		case now-refused > rosterPatience:
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
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// openStore opens the data directory.
func (s *Server) openStore(context.Context) error {
	memory := s.config.MemoryBytes
	o := store.Options{
		Dir: s.config.Data, ClusterID: s.directory.Cluster().ID, NodeID: s.id,
		Meta:            meta.Options{BlockCacheBytes: memory / 10, ValueCacheBytes: memory / 8, MemtableBytes: 12 << 20},
		Pack:            pack.Options{ReserveBytes: max(s.config.ReserveBytes/2, 1)},
		CheckpointBytes: s.config.CheckpointBytes, BallastBytes: s.config.ReserveBytes / 4,
		Clock: s.clock, Wall: s.deps.Wall, Logger: s.log, Fatal: s.fail,
	}
	if s.deps.Disk != nil {
		s.deps.Disk(&o)
	}
	var err error
	if s.store, err = store.Open(o); err != nil {
		return err
	}
	s.space = diskspace.New(diskspace.Options{
		Self: s.id, Disk: s.store, CapacityBytes: s.config.CapacityBytes, ReserveBytes: s.config.ReserveBytes,
		Leading: s.leading, Node: s.directory.Node, Changed: func() { s.life.spawn(s.registrar.Refresh) }, Logger: s.log,
	})
	return nil
}

// stagedLife is for how long a chunk counts at least that its user stored and
// does not commit.
const stagedLife = time.Hour

// openLoop brings the replica core back and makes the loop.
func (s *Server) openLoop(context.Context) error {
	s.ledger = replog.New(s.store)
	restored, err := s.ledger.Recover()
	if err != nil {
		return err
	}
	c := replica.Config{
		Self: s.id, Incarnation: s.store.Incarnation(), Boot: s.boot, Start: s.clock(), Lease: s.config.Lease,
		Limits: replica.Limits{KeepBytes: s.config.MissedBytes, ClientLife: s.config.RegistrationLife},
	}
	c.Bugs.AckBeforeSync = plant.On(plant.CoreAckUnsynced)
	c.Bugs.NoEpochCheck = plant.On(plant.CoreNoEpochCheck)
	c.Bugs.LeaseFromAnswer = plant.On(plant.CoreLeaseFromAnswer)
	c.Bugs.TakeoverHearsOne = plant.On(plant.CoreHearsOne)
	c.Bugs.KeepsRemoved = plant.On(plant.CoreKeepsRemoved)
	c.Bugs.LeadsAtOnce = plant.On(plant.CoreLeadsAtOnce)
	if s.deps.Core != nil {
		s.deps.Core(&c)
	}
	core := replica.New(c)
	for i := range restored {
		if err := core.Restore(s.clock(), restored[i]); err != nil {
			return err
		}
		s.stamps.Observe(string(s.id), uint64(restored[i].BaseTime))
	}
	s.cost = &cost.Counter{Self: s.id, Published: func(id ids.Slice) *operate.Published { return s.loop.Published(id) },
		Far: func(peer string) bool { return s.who.IsElsewhere(peer, ids.Site(s.config.Site)) }}
	nodes := chunks.NewNodes(s.store.Packs(), 8<<20)
	staged := chunks.NewStaged(s.config.MaxUserStagedBytes, stagedLife, s.clock)
	s.content = &chunks.Server{Self: string(s.id), Packs: s.store.Packs(), Nodes: nodes, Caller: s.host, Full: s.space.IsFull, Far: s.cost.Far, Staged: staged}
	limits := lease.DefaultConfig()
	limits.Length, limits.Shared = int64(s.config.Session), int64(s.config.Shared)
	limits.MaxSessions, limits.MaxLeases = s.config.MaxSessions, s.config.MaxLeases
	limits.MaxUserSessions, limits.MaxUserLeases = s.config.MaxUserSessions, s.config.MaxUserLeases
	s.sessions = leases.New(leases.Options{
		Config: limits, First: s.chance.Uint64(), Clock: s.clock, Caller: s.host, Logger: s.log,
		Each:      func(f func(*operate.Published) bool) { s.loop.EachPublished(f) },
		Published: func(id ids.Slice) *operate.Published { return s.loop.Published(id) },
		Ended:     s.sessionEnded,
		Far:       s.cost.Far,
	})
	s.openAnswers()
	s.driver = &driver{life: &s.life, meta: s.store.Meta(), fetcher: s.fetcher, sessions: s.sessions, locks: s.locks, fail: s.fail}
	s.loop = operate.New(operate.Options{
		Self: s.id, Core: core, Clock: s.clock, HLC: s.hlc, Disk: s.ledger, Meta: s.store.Meta(), Chunks: nodes,
		Leases: s.sessions, Network: s.host, Helpers: s.driver, Rows: func(r geoconfig.SliceRow) { s.directory.Learn(r) },
		Committed: staged.Committed, Full: s.space.IsFullFor, Fatal: s.fail, TickEvery: s.config.Lease / 60, QueueLimit: s.config.QueueLimit, QueueBytes: int(s.config.MemoryBytes / 4), MaxUserHolds: s.config.MaxUserHolds, Logger: s.log,
	})
	s.sender = snapshot.NewSender(snapshot.SenderOptions{
		Loop: s.loop, Meta: s.store.Meta(), Node: s.who.Node, PageBytes: s.config.TransferPageBytes, Random: s.chance.Uint64,
	})
	s.leader = s.newLeader()
	s.driver.loop, s.driver.leader = s.loop, s.leader
	s.driver.receiver = snapshot.NewReceiver(snapshot.ReceiverOptions{
		Loop: s.loop, Copies: s.loop, Host: s.host, Meta: s.store.Meta(), Fetcher: s.fetcher, Clock: s.clock, Logger: s.log,
	})
	for i := range restored {
		if err := s.loop.Restored(&restored[i]); err != nil {
			return err
		}
	}
	s.driver.swaps = &rowcas.Runner{Store: s.geo, Self: s.id, Boot: s.boot, Wall: s.deps.Wall,
		Done: func(sw replica.Swap, o replica.Outcome, row *geoconfig.SliceRow) {
			s.loop.Do(func(core *replica.Node, now replica.Time) { core.Swapped(now, sw, o, row) })
			if row != nil {
				s.directory.Learn(*row)
			}
		}}
	return nil
}

// openServices registers what the node answers, and starts the loop.
func (s *Server) openServices(context.Context) error {
	s.openRunners()
	s.handle()
	s.life.spawn(s.loop.Run)
	s.life.spawn(s.sessions.Run)
	s.life.spawn(s.intents.Run)
	s.gate.Open(peers.Parts{Who: s.who, Loop: s.loop, Survey: s.survey, Recheck: s.host.Recheck, HoldsGeoConfig: s.config.holdsGeoConfig})
	if s.life.failed.Load() { // before there was a loop to stop
		s.loop.Stop()
	}
	s.loop.Learn(s.directory.Slices())
	return nil
}

func (s *Server) listen(context.Context) error {
	s.endpoint.ListenLocal()
	if err := s.host.Listen(); err != nil {
		return &fault.Error{Kind: fault.KindOf(err), Op: "server.Open", Subject: fmt.Sprint(s.config.Listen),
			Public: "the node cannot listen there: another program may use the port", Cause: err}
	}
	return nil
}

// register connects the node to the others and brings its row up to date.
func (s *Server) register(ctx context.Context) error {
	s.meet()
	return s.registrar.Register(ctx)
}

// describe puts into the node's row what it says of itself.
func (s *Server) describe(n *geoconfig.Node) {
	usage := s.store.Usage()
	n.Addresses = s.endpoint.Advertised()
	n.Incarnation, n.Version = s.store.Incarnation(), s.deps.Version
	n.CapacityBytes = s.space.Capacity(usage)
	n.UsedBytes = n.CapacityBytes - max(s.space.Free(usage), 0)
	s.survey.FillRow(n)
}

// learn takes in slice rows that are newer than what was known.
func (s *Server) learn(rows []geoconfig.SliceRow) {
	for _, row := range rows {
		s.strays.Note(row, s.clock(), s.siteOf)
	}
	s.gate.Learn(rows) // what came before it was open, openServices passes on
}

// siteOf returns where a node stands; empty: it is not known.
func (s *Server) siteOf(id ids.Node) ids.Site {
	n, _ := s.directory.Node(id)
	return n.Site
}
