package server

import (
	"context"
	"errors"
	"fmt"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/diskspace"
	"cartwheel.dev/node/server/peers"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/store/pack"
)

// Open starts a node and returns when it serves. The context bounds the start
// alone.
func Open(ctx context.Context, c Config, d Deps) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	d = d.withDefaults()
	s := &Server{base: newBase(&d), config: c, deps: d}
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
	s.life.spawn(s.budgets.Run)
	s.life.spawn(s.snapshots.Run)
	s.life.spawn(s.newWatchdog().Run)
	s.life.spawn(s.space.Run)
	s.life.spawn(s.newKeeper().Run)
	s.life.spawn(s.giver.Run)
	s.life.spawn(s.net.survey.Run)
	s.life.spawn(s.answers.side.Run)
	s.life.spawn(s.answers.pending.Run)
	collector := s.newCollector()
	s.life.spawn(collector.RunSlices)
	s.life.spawn(collector.RunPacks)
	s.life.spawn(s.scrub.Run)
	return nil
}

// openStore opens the data directory.
func (s *Server) openStore(context.Context) error {
	memory := s.config.MemoryBytes
	o := store.Options{
		Dir: s.config.Data, ClusterID: s.directory.Cluster().ID, NodeID: s.id,
		Meta:            meta.Options{BlockCacheBytes: memory / 10, ValueCacheBytes: memory / 8, MemtableBytes: 12 << 20},
		Pack:            pack.Options{ReserveBytes: max(s.config.ReserveBytes/2, 1), Pin: s.config.UploadGrace},
		CheckpointBytes: s.config.CheckpointBytes, BallastBytes: s.config.ReserveBytes / 4,
		Clock: s.clock, Wall: s.wall, Logger: s.logger, Fatal: s.fail,
	}
	if s.deps.Disk != nil {
		s.deps.Disk(&o)
	}
	s.sideFiles = o.MetaFS
	var err error
	if s.store, err = store.Open(o); err != nil {
		return err
	}
	s.space = diskspace.New(diskspace.Options{
		Self: s.id, Disk: s.store, CapacityBytes: s.config.CapacityBytes, ReserveBytes: s.config.ReserveBytes,
		Leading: s.leading, Node: s.directory.Node, Changed: func() { s.life.spawn(s.net.registrar.Refresh) }, Logger: s.logger,
	})
	return nil
}

// openServices registers what the node answers, and starts the loop.
func (s *Server) openServices(context.Context) error {
	if err := s.openRunners(); err != nil {
		return err
	}
	s.handle()
	s.life.spawn(s.loop.Run)
	s.life.spawn(s.answers.sessions.Run)
	s.life.spawn(s.intents.Run)
	s.net.gate.Open(peers.Parts{
		Who: s.net.who, Loop: s.loop, Survey: s.net.survey, Recheck: s.net.host.Recheck, HoldsGeoConfig: s.config.holdsGeoConfig,
	})
	if s.life.failed.Load() { // before there was a loop to stop
		s.loop.Stop()
	}
	s.loop.Learn(s.directory.Slices())
	return nil
}

// listen lets other processes connect.
func (s *Server) listen(context.Context) error {
	s.net.endpoint.ListenLocal()
	if err := s.net.host.Listen(); err != nil {
		return &fault.Error{Kind: fault.KindOf(err), Op: "server.listen", Subject: fmt.Sprint(s.config.Listen),
			Public: "the node cannot listen there: another program may use the port", Cause: err}
	}
	return nil
}

// register connects the node to the others and brings its row up to date.
func (s *Server) register(ctx context.Context) error {
	s.meet()
	return s.net.registrar.Register(ctx)
}
