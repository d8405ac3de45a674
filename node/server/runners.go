package server

import (
	"context"
	"path/filepath"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/repair"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/allocation"
	"cartwheel.dev/node/server/collection"
	"cartwheel.dev/node/server/failback"
	"cartwheel.dev/node/server/intents"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/scrub"
	"cartwheel.dev/node/server/upkeep"
	"cartwheel.dev/node/server/watchdog"
	"cartwheel.dev/node/wire"
)

// openRunners makes the parts that act on their own.
func (s *Server) openRunners() error {
	s.slices = allocation.New(allocation.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Roster: s.directory, Sites: s.directory.Sites,
		Generation: func() ids.Generation { return s.directory.Cluster().Generation },
		Connected:  func(id ids.Node) bool { return s.net.host.Connected(string(id), wire.Beacon) },
		Distance:   s.net.survey.Distance, Measure: s.net.survey.Measure,
		Returns: func(id ids.Slice) bool { return s.strays.Returns(id, s.clock()) },
		Serves:  s.Serves, Apply: s.geo.Apply, Key: s.batchKey, Learn: s.directory.Learn,
		ExpectedNodes: s.config.ExpectedNodes, MaxNewSlices: s.config.MaxNewSlices, LeaderTimeout: s.config.Lease,
		Clock: s.clock, Wall: s.wall, Random: s.chance.Uint64, Logger: s.logger,
	})
	s.intents = intents.New(intents.Options{
		Self: s.id, Loop: s.loop, Host: s.net.host, Sessions: s.readers(), Cost: s.answers.cost, Committed: s.committed, Row: s.directory.Slice,
		Propose: func(ctx context.Context, id ids.Slice, op *pb.Operation, client, number uint64) (operate.Answer, error) {
			return operate.Propose(ctx, s.loop, id, op, client, number)
		},
		Leading: s.leader.Slices, StepTimeout: s.deps.StepTimeout, Clock: s.clock, Wall: s.wall, HLC: s.hlc, Random: s.chance.Uint64,
		Go: s.life.spawn, Logger: s.logger,
	})
	s.giver = newGiver(s)
	return s.openScrub()
}

// hasWhole reports whether this node's copy of a slice has all that it says to have.
func (s *Server) hasWhole(ctx context.Context, id ids.Slice) (whole bool) {
	err := s.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) { _, whole = core.Snapshot(id) })
	return err == nil && whole
}

// openScrub makes what reads all that the node stores.
func (s *Server) openScrub() (err error) {
	dir := "scrub"
	if s.sideFiles == nil {
		dir = filepath.Join(s.config.Data, dir)
	}
	s.scrub, err = scrub.Open(scrub.Options{
		Self: s.id, Period: s.config.ScrubPeriod, Dir: dir, FS: s.sideFiles, Whole: s.hasWhole, Packs: s.store.Packs(), Meta: s.store.Meta(),
		Nodes: s.answers.content.Nodes, Row: s.directory.Slice, Committed: s.committed, Fetch: s.driver.fetcher.FetchOnce,
		Comparing: scrub.Comparing{
			Rows: s.directory.Slices,
			Compare: func(ctx context.Context, id ids.Slice, with ids.Node, rest func(context.Context, int) error) (ids.Serial, bool, error) {
				c, err := s.driver.receiver.CompareWith(ctx, id, string(with), rest)
				return c.Serial, c.Equal, err
			},
			Distrust: func(ctx context.Context, id ids.Slice) (done bool) {
				err := s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) { done = core.Distrust(now, id) })
				return err == nil && done
			},
		},
		Clock: s.clock, Wall: s.wall, Logger: s.logger,
	})
	return err
}

// newWatchdog makes what ends the node once its disk does not answer.
func (s *Server) newWatchdog() *watchdog.Dog {
	return watchdog.New(watchdog.Options{After: s.deps.StallAfter, Data: s.config.Data, Progress: s.loop.Progress,
		IsFull: func() bool { return s.store.Room(0) != nil }, Fail: s.fail})
}

// newKeeper makes what looks after a node's part.
func (s *Server) newKeeper() *upkeep.Keeper {
	home := failback.New(failback.Options{
		Self: s.id, Site: ids.Site(s.config.Site), Leading: s.leader.Slices, Row: s.directory.Slice, Node: s.directory.Node,
		Connected: func(id ids.Node) bool { return s.net.host.Connected(string(id), wire.Operation) },
		HandOver:  s.leader.HandOver, Clock: s.clock, Logger: s.logger,
	})
	return upkeep.New(upkeep.Options{
		Self: s.id, Loop: s.loop, Ledger: s.ledger, NeedsCheckpoint: s.store.NeedsCheckpoint, Roster: s.directory, Slices: s.slices,
		Leading: s.leader.Slices, Distance: s.net.survey.Distance, Measure: s.net.survey.Measure, Committed: s.committed, HandOver: s.leader.HandOver,
		Claim: func(row *geoconfig.SliceRow) repair.Claim { return claimOf(s, row) }, FailBack: home.Step, Refresh: s.net.registrar.Refresh,
		MaxSliceObjects: s.config.MaxSliceObjects, FailedAfter: s.config.FailedAfter, Clock: s.clock, Logger: s.logger,
	})
}

// retention is how long a node retains what was replaced or deleted.
func retention(c *Config) collection.Terms {
	return collection.Terms{Retention: c.Retention, RetentionLeast: c.RetentionLeast, UploadGrace: c.UploadGrace, Lease: c.Lease}
}

// newCollector makes what gives back the space of what nothing needs.
func (s *Server) newCollector() *collection.Collector {
	return collection.New(collection.Options{
		Self: s.id, Loop: s.loop, Packs: s.store.Packs(), Meta: s.store.Meta(), Nodes: s.answers.content.Nodes,
		Leading: s.leader.Slices, Committed: s.committed,
		Propose: func(ctx context.Context, id ids.Slice, op *pb.Operation) error {
			a, err := operate.Propose(ctx, s.loop, id, op, 0, 0)
			if err == nil && a.Result.GetKind() != 0 {
				err = fault.E(fault.Kind(a.Result.Kind), "server.collect", "", a.Result.Message)
			}
			return err
		},
		Snapshots: s.snapshots.Kept,
		Forgets: func(row *geoconfig.SliceRow) bool {
			return !slices.ContainsFunc(row.Members, func(m geoconfig.Member) bool {
				node, known := s.directory.Node(m.Node)
				return known && node.Feature < version.Forgetting
			})
		},
		Aside:   func() bool { return s.answers.side.KeepsAny() || s.answers.pending.Len() > 0 },
		Vouched: s.net.stamps.Vouched, Short: s.space.IsFull, ShortFor: s.space.IsFullFor, HLC: s.hlc,
		Terms: retention(&s.config), Clock: s.clock, Logger: s.logger,
	})
}
