// Package server is one storage node, assembled: its disk, its loop, its
// connections, its copy of the configuration, and what it answers to clients
// and other nodes. It holds no protocol of its own: the packages below it do
// the work, and this one wires them together, starts them and stops them. A
// Server is safe for concurrent use.
package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/advisory"
	"cartwheel.dev/node/server/allocation"
	"cartwheel.dev/node/server/chunks"
	"cartwheel.dev/node/server/cluster"
	"cartwheel.dev/node/server/cost"
	"cartwheel.dev/node/server/diskspace"
	"cartwheel.dev/node/server/failback"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/intents"
	"cartwheel.dev/node/server/leadership"
	"cartwheel.dev/node/server/leases"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/peers"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/server/registration"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/server/snapshot"
	"cartwheel.dev/node/server/survey"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/server/watchdog"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Deps are what a node is given; nil ones get the machine's own.
type Deps struct {
	Key wire.Key
	// Store opens the configuration store, which may use the node's host.
	Store   func(*wire.Host) (geoconfig.Store, error)
	Version string
	Clock   boottime.Func
	Wall    func() time.Time
	Random  *rand.Rand
	Logger  *slog.Logger
	// Times are wire's; the zero value takes its defaults.
	Times wire.Times
	// StallAfter is how long the disk may not answer before the node ends; 0: 30 s.
	StallAfter time.Duration
	// StepTimeout bounds one step of an operation over several slices, and how
	// long intents that were left stay unfinished; 0: 5 s.
	StepTimeout time.Duration
	// The rest is nil but in a simulation. Network makes the connections. Disk
	// and Core change what the store and the replica core are made with: other
	// file systems, tiny limits.
	Network wire.Network
	Disk    func(*store.Options)
	Core    func(*replica.Config)
}

// Server is a running node.
type Server struct {
	config Config
	deps   Deps
	id     ids.Node
	log    *slog.Logger
	clock  boottime.Func
	hlc    *hlc.Clock
	boot   uint64
	began  time.Duration

	host      *wire.Host
	geo       geoconfig.Store
	directory *cluster.Directory
	store     *store.Store
	space     *diskspace.Gauge
	ledger    *replog.Ledger
	loop      *operate.Loop
	driver    *driver
	leader    *leadership.Leader
	who       *identity.Registry
	cost      *cost.Counter
	tickets   *ticket.Sealer
	content   *chunks.Server
	reading   *reading.Server
	access    *access.Control
	sessions  *leases.Sessions
	locks     *advisory.Server
	holds     *advisory.Holds
	fetcher   *snapshot.Fetcher
	sender    *snapshot.Sender
	survey    *survey.Surveyor
	intents   *intents.Runner
	strays    failback.Observer
	slices    *allocation.Allocator
	gate      peers.Gate
	stamps    *peers.Stamps
	meet      func() // connects the node to those of the roster
	registrar *registration.Registrar
	endpoint  *registration.Endpoint

	chance *source
	life   lifetime
}

func (d Deps) withDefaults() Deps {
	if d.Clock == nil {
		d.Clock = boottime.Default()
	}
	if d.StallAfter == 0 {
		d.StallAfter = watchdog.After
	}
	if d.StepTimeout == 0 {
		d.StepTimeout = intents.StepTimeout
	}
	if d.Wall == nil {
		d.Wall = time.Now
	}
	if d.Random == nil {
		d.Random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d
}

// shortID is the end of a node's ID, which tells nodes apart in a log.
func shortID(id ids.Node) string { return string(id[max(0, len(id)-8):]) }

// ID names the node.
func (s *Server) ID() ids.Node { return s.id }

// Addresses returns where the node listens.
func (s *Server) Addresses() []string { return s.host.Addresses() }

// Cluster names the cluster that the node belongs to.
func (s *Server) Cluster() ids.Cluster { return s.directory.Cluster().ID }

// CheckRoot answers nil once this node leads the root slice and the root is
// there.
func (s *Server) CheckRoot() error {
	p := s.loop.Published(ids.RootSlice)
	if !p.Serves(s.clock()) {
		return fault.E(fault.NotActive, "server.CheckRoot", string(s.id), "this node does not act for the root slice now")
	}
	_, err := tree.GetAttr(operate.Committed(s.store.Meta(), ids.RootSlice), ids.RootObject, false, false)
	return err
}

// CheckCopy answers nil if this node's own copy, whatever its part, has a name
// and all the content of the file that it names.
func (s *Server) CheckCopy(dir ids.Object, name []byte) error {
	v := operate.Committed(s.store.Meta(), dir.Slice())
	e, err := tree.Lookup(v, dir, name)
	if err != nil {
		return err
	}
	attr, err := tree.GetAttr(v, e.Object, true, false)
	if err != nil || attr.Content == nil || len(attr.Content.Root) == 0 {
		return err
	}
	_, _, done, err := s.content.Range(s.life.ctx, &pb.RangeRequest{Root: attr.Content.Root, Height: attr.Content.Height, Length: attr.Size, Data: true})
	if done != nil {
		done()
	}
	return err
}

// JournalBytes returns how much of the journal a start would read.
func (s *Server) JournalBytes() int64 { return s.store.Journal().Bytes() }

// Locks returns how many advisory locks are held here and how many requests
// wait for one.
func (s *Server) Locks() (held, waiting int) {
	return s.locks.Len()
}

// Failed gives the error after which the node must end; its owner calls Close.
func (s *Server) Failed() <-chan error { return s.life.failure }

// Host returns the node's connections, for tests that disturb them.
func (s *Server) Host() *wire.Host { return s.host }

// fail notes a failure that ends the node. It does not block.
func (s *Server) fail(err error) {
	if s.life.fail(err) {
		s.log.Error("the node must end", "error", err)
	}
	// From here on nothing is acknowledged or promised.
	if s.gate.IsOpen() {
		s.loop.Stop()
	}
}

// Abort stops the node as a crash would: nothing is handed over, nobody is told.
func (s *Server) Abort() error {
	s.life.aborted.Store(true)
	return s.Close()
}

// Close stops the node: no more requests, the loop, then the disk.
func (s *Server) Close() error { return s.life.close(s.close) }

// leave passes the node's part in its slices on, within the time that clients
// would wait for it anyway.
func (s *Server) leave() {
	ctx, cancel := context.WithTimeout(s.life.ctx, s.config.Session+s.config.Lease/2)
	defer cancel()
	s.host.SetFilter(nil)
	s.leader.Leave(ctx, func() bool { return !s.life.canPassOn() })
}

func (s *Server) close() error {
	var err error
	if s.gate.IsOpen() && s.life.canPassOn() {
		s.leave()
	}
	s.life.stop()
	if s.geo != nil {
		err = errors.Join(err, s.geo.Close())
	}
	if s.host != nil {
		err = errors.Join(err, s.host.Close())
	}
	s.life.wait()
	if s.driver != nil && s.driver.swaps != nil {
		s.driver.swaps.Wait()
	}
	if s.sender != nil {
		s.sender.Close()
	}
	if s.store != nil {
		err = errors.Join(err, closeQuietly(s.store))
	}
	return err
}

// closeQuietly closes the disk; after a failed write, closing fails too, and
// the first failure was told already.
func closeQuietly(c io.Closer) error {
	err := c.Close()
	if fault.Is(err, fault.Closed) {
		return nil
	}
	return err
}
