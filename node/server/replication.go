package server

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/repair"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/leadership"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/server/requests"
	"cartwheel.dev/node/server/rowcas"
	"cartwheel.dev/node/server/snapshot"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// ticksALease is how often the loop ticks in the time of a lease.
const ticksALease = 60

// openLoop brings the replica core back and makes the loop with what it drives.
func (s *Server) openLoop(context.Context) error {
	s.ledger = replog.New(s.store)
	restored, err := s.ledger.Recover()
	if err != nil {
		return err
	}
	core, err := s.restoreCore(restored)
	if err != nil {
		return err
	}
	s.openAnswers()
	if err := s.openSide(); err != nil {
		return err
	}
	if err := s.openPending(); err != nil {
		return err
	}
	d := &driver{life: &s.life, meta: s.store.Meta(), sessions: s.answers.sessions, locks: s.answers.locks, doubtAll: s.store.Packs().DoubtAll, fail: s.fail}
	s.driver = d
	s.loop = operate.New(operate.Options{
		Self: s.id, Core: core, Clock: s.clock, HLC: s.hlc, Disk: s.ledger, Meta: s.store.Meta(), Chunks: s.answers.content.Nodes,
		Leases: s.answers.sessions, Network: s.net.host, Helpers: d, Pending: s.answers.pending, Rows: func(r geoconfig.SliceRow) { s.directory.Learn(r) },
		Committed: s.answers.content.Staged.Committed, Dropped: s.store.Packs().Doubt, Full: s.space.IsFullFor, Fatal: s.fail, TickEvery: s.config.Lease / ticksALease,
		QueueLimit: s.config.QueueLimit, QueueBytes: int(s.config.MemoryBytes / 4), MaxUserHolds: s.config.MaxUserHolds, Logger: s.logger,
	})
	s.leader = s.newLeader()
	d.loop, d.leader = s.loop, s.leader
	d.fetcher = snapshot.NewFetcher(snapshot.FetcherOptions{
		Self: s.id, Row: s.directory.Slice, Host: s.net.host, Patient: s.patient, Packs: s.store.Packs(), Clock: s.clock, Logger: s.logger,
	})
	d.receiver = snapshot.NewReceiver(snapshot.ReceiverOptions{
		Loop: s.loop, Copies: s.loop, Host: s.net.host, Meta: s.store.Meta(), Fetcher: d.fetcher, Claim: func(id ids.Slice) repair.Claim { return claim(s, id) }, Clock: s.clock, Logger: s.logger,
	})
	s.sender = snapshot.NewSender(snapshot.SenderOptions{
		Loop: s.loop, Meta: s.store.Meta(), Node: s.net.who.Node, PageBytes: s.config.TransferPageBytes, Random: s.chance.Uint64,
		Wait: func(ctx context.Context, peer string, slice ids.Slice, bytes int) error {
			return s.budgets.Answer(ctx, peer, requests.Purpose(s.directory.Slice, slice, ids.Node(peer)), bytes)
		},
	})
	d.swaps = &rowcas.Runner{Store: s.geo, Self: s.id, Boot: s.boot, Wall: s.wall, Done: s.swapped}
	for i := range restored {
		if err := s.loop.Restored(&restored[i]); err != nil {
			return err
		}
	}
	return nil
}

// restoreCore makes the replica core with the slices that the ledger has.
func (s *Server) restoreCore(restored []replica.Restored) (*replica.Node, error) {
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
			return nil, err
		}
		s.net.stamps.Observe(string(s.id), uint64(restored[i].BaseTime))
	}
	return core, nil
}

// swapped tells the core how a change of a slice's row ended, and takes in the
// row that is there now.
func (s *Server) swapped(sw replica.Swap, o replica.Outcome, row *geoconfig.SliceRow) {
	tell := func() {
		s.loop.Do(func(core *replica.Node, now replica.Time) { core.Swapped(now, sw, o, row) })
	}
	if row != nil && s.directory.LearnSwapped(*row, tell) {
		return
	}
	if row != nil { // the store is lost for this node, and so is what it says
		o, row = replica.Void, nil
	}
	tell()
}

// newLeader makes what acts for the node's slices.
func (s *Server) newLeader() *leadership.Leader {
	return leadership.New(leadership.Options{
		Self: s.id, Loop: s.loop, Roster: s.directory,
		Connected: func(id ids.Node) bool { return s.net.host.Connected(string(id), wire.Operation) },
		Committed: s.committed, Resume: func(id ids.Slice) { s.intents.Resume(id) }, ReleaseAbsent: s.answers.holds.ReleaseAbsent,
		Lease: s.config.Lease, Session: s.config.Session, Clock: s.clock, Wall: s.wall, Logger: s.logger,
	})
}

// committed is what this node's own copy of a slice shows.
func (s *Server) committed(id ids.Slice) tree.View { return operate.Committed(s.store.Meta(), id) }

// heard is how long ago this node heard the active of a slice.
func (s *Server) heard(ctx context.Context, id ids.Slice) (age time.Duration, err error) {
	err = s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) {
		if st, ok := core.Status(id); ok {
			age = now - st.Heard
		}
	})
	return age, err
}

// leading lists the rows of the slices that this node acts for.
func (s *Server) leading() []geoconfig.SliceRow { return s.leader.Slices() }
