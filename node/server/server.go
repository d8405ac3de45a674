// Package server is one storage node, assembled: its disk, its loop, its
// connections, its copy of the configuration, and what it answers to clients
// and other nodes. It holds no protocol of its own: the packages below it do
// the work, and this one wires them together, starts them and stops them. A
// Server is safe for concurrent use.
//
// The parts take the functions or the few methods that they need, and never the
// Server:
//
//	cluster       keeps the node's copy of the configuration
//	peers         says who may connect, and keeps connections to other nodes
//	identity      knows who stands behind a connection
//	registration  keeps the node's own row, and knows where the node listens
//	survey        measures distances to other nodes, and publishes them
//	audit         judges the sites by those distances
//	operate       orders operations: the loop, which owns the replica core
//	replog        is the loop's log on the journal
//	rowcas        changes slices' rows by compare and swap
//	snapshot      sends and receives the state of slices, and fetches chunks
//	requests      answers operations, chunk calls, listings, hellos and frames
//	access        says as whom a request acts and what it may name
//	ticket        seals and opens tickets
//	reading       answers what clients ask about objects
//	chunks        serves chunks by address
//	sharing       brings chunks for the clients of a site
//	budget        keeps content within the budgets between sites
//	leases        keeps the clients' sessions and what they may cache
//	advisory      keeps advisory locks and open files
//	cost          counts the round trips that operations wait for
//	leadership    acts for the slices that the node leads
//	intents       runs operations over several slices
//	allocation    says which slice a new object goes to, and makes slices
//	placement     chooses nodes for a slice
//	failback      hands slices back to their home sites
//	collection    gives back the space of what nothing needs
//	scrub         reads all that the node stores, and repairs what is damaged
//	turns         has copies of slices made here one at a time, in their order
//	upkeep        checkpoints, and adds members that slices lack
//	relief        gives slices away while the disk is above its high mark
//	diskspace     watches how full the disk is
//	watchdog      ends the node where the disk does not answer
//	outage        behaves as if something had failed, in a drill
//	admin         answers the people who run the cluster
//
// Open makes them in an order in which each finds what it needs; start.go has the
// steps. A part that needs a later one takes a function that looks it up.
package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/repair"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/advisory"
	"cartwheel.dev/node/server/allocation"
	"cartwheel.dev/node/server/budget"
	"cartwheel.dev/node/server/chunks"
	"cartwheel.dev/node/server/cluster"
	"cartwheel.dev/node/server/cost"
	"cartwheel.dev/node/server/creates"
	"cartwheel.dev/node/server/diskspace"
	"cartwheel.dev/node/server/failback"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/intents"
	"cartwheel.dev/node/server/leadership"
	"cartwheel.dev/node/server/leases"
	"cartwheel.dev/node/server/metrics"
	"cartwheel.dev/node/server/named"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/outage"
	"cartwheel.dev/node/server/peers"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/server/registration"
	"cartwheel.dev/node/server/relief"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/server/scrub"
	"cartwheel.dev/node/server/sharing"
	"cartwheel.dev/node/server/side"
	"cartwheel.dev/node/server/snapshot"
	"cartwheel.dev/node/server/survey"
	"cartwheel.dev/node/server/usage"
	"cartwheel.dev/node/server/watchdog"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/wire"
)

// Deps are what a node is given; nil ones get the machine's own.
type Deps struct {
	Key wire.Key
	// Store opens the configuration store, which may use the node's host.
	Store   func(*wire.Host) (geoconfig.Store, error)
	Version string
	// Feature is the highest feature level that the node tells the others; 0:
	// the program's.
	Feature int
	Clock   boottime.Func
	Wall    func() time.Time
	Random  *rand.Rand
	Logger  *slog.Logger
	// Metrics counts what the node answers; nil: nobody counts.
	Metrics *metrics.Registry
	// Tracer follows operations through the node; nil: none are followed.
	Tracer wire.Tracer
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

// Server is a running node. Open makes the parts, which do not change afterwards.
// A part is nil until its step of the start; Close takes down what there is.
type Server struct {
	base
	config Config
	deps   Deps
	life   lifetime

	sideFiles vfs.FS // where side logs are kept; nil: the operating system's

	// The cluster's configuration, and this node's copy of it.
	geo       geoconfig.Store
	directory *cluster.Directory

	net       connections
	snapshots *named.List
	// budgets has content wait that goes to other sites.
	budgets *budget.Keeper

	// The disk, and how full it is.
	store *store.Store
	space *diskspace.Gauge

	// The loop orders the operations of all slices; the ledger is its log, and the
	// driver does for it what may block.
	ledger *replog.Ledger
	loop   *operate.Loop
	driver *driver
	sender *snapshot.Sender

	answers answers

	// What the node does about its slices on its own.
	leader  *leadership.Leader
	intents *intents.Runner
	slices  *allocation.Allocator
	strays  failback.Observer
	losses  repair.Losses
	scrub   *scrub.Scrubber
	giver   *relief.Giver
}

// connections are a node's ties to the other processes of its cluster. The host
// comes first and calls the gate back; who, survey and registrar come once the
// node knows its cluster.
type connections struct {
	gate      peers.Gate // shut until the parts that it tells of peers are there
	stage     *outage.Stage
	host      *wire.Host
	stamps    *peers.Stamps
	contacts  *peers.Contacts
	who       *identity.Registry
	survey    *survey.Surveyor
	endpoint  *registration.Endpoint
	registrar *registration.Registrar
}

// answers are the parts that answer requests, and what these have in common: who
// may do what, and who holds what. They are made before the loop, which calls
// some of them back.
type answers struct {
	cost     *cost.Counter
	access   *access.Control
	sessions *leases.Sessions
	locks    *advisory.Server
	holds    *advisory.Holds
	content  *chunks.Server
	shared   *sharing.Cache
	reading  *reading.Server
	side     *side.Log
	pending  *creates.Table
	teller   *usage.Teller
}

func (d Deps) withDefaults() Deps {
	if d.Clock == nil {
		d.Clock = boottime.Default()
	}
	if d.Feature == 0 {
		d.Feature = version.Feature
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

// ID names the node.
func (s *Server) ID() ids.Node { return s.id }

// Addresses returns where the node listens.
func (s *Server) Addresses() []string { return s.net.host.Addresses() }

// Cluster names the cluster that the node belongs to.
func (s *Server) Cluster() ids.Cluster { return s.directory.Cluster().ID }

// JournalBytes returns how much of the journal a start would read.
func (s *Server) JournalBytes() int64 { return s.store.Journal().Bytes() }

// Locks returns how many advisory locks are held here and how many requests
// wait for one.
func (s *Server) Locks() (held, waiting int) { return s.answers.locks.Len() }

// Failed gives the error after which the node must end; its owner calls Close.
func (s *Server) Failed() <-chan error { return s.life.failure }

// Host returns the node's connections, for tests that disturb them.
func (s *Server) Host() *wire.Host { return s.net.host }

// fail notes a failure that ends the node. It does not block.
func (s *Server) fail(err error) {
	if s.life.fail(err) {
		s.logger.Error("the node must end", logattr.Err(err))
	}
	// From here on nothing is acknowledged or promised.
	if s.net.gate.IsOpen() {
		s.loop.Stop()
	}
}

// Abort stops the node as a crash would: it hands nothing over and tells no peer.
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
	s.net.host.SetFilter(nil)
	s.leader.Leave(ctx, func() bool { return !s.life.canPassOn() })
}

// close takes down what there is.
func (s *Server) close() error {
	var err error
	if s.net.gate.IsOpen() && s.life.canPassOn() {
		s.leave()
	}
	s.life.stop()
	if s.geo != nil {
		err = errors.Join(err, s.geo.Close())
	}
	if s.net.host != nil {
		err = errors.Join(err, s.net.host.Close())
	}
	s.life.wait()
	if s.driver != nil && s.driver.swaps != nil {
		s.driver.swaps.Wait()
	}
	if s.sender != nil {
		s.sender.Close()
	}
	if s.answers.side != nil {
		err = errors.Join(err, closeQuietly(s.answers.side))
	}
	if s.answers.pending != nil {
		err = errors.Join(err, closeQuietly(s.answers.pending))
	}
	if s.store != nil {
		err = errors.Join(err, closeQuietly(s.store))
	}
	return err
}

// closeQuietly closes the disk. After a failed write closing fails too, and the
// node's owner has heard of the write.
func closeQuietly(c io.Closer) error {
	err := c.Close()
	if fault.Is(err, fault.Closed) {
		return nil
	}
	return err
}
