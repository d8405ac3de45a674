// Package reads answers the routes of the admin API that change nothing. It shows the
// node's own copy of the configuration, joined with what the nodes last said of
// themselves. Who may ask what is not its subject: package api has the routes and
// their roles. A Reads is safe for concurrent use.
package reads

import (
	"context"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/auditlog"
	"cartwheel.dev/node/api/events"
	"cartwheel.dev/node/api/gather"
	"cartwheel.dev/node/api/index"
	"cartwheel.dev/node/api/runs"
	"cartwheel.dev/node/api/tally"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/cluster"
	"cartwheel.dev/node/server/named"
)

// statusEvery is how often the state of the nodes is looked at while someone reads
// the events.
const statusEvery = 2 * time.Second

// Directory is the node's copy of the configuration.
type Directory interface {
	Cluster() geoconfig.Cluster
	Revision() ids.Revision
	Away() time.Time
	Slice(ids.Slice) (geoconfig.SliceRow, bool)
	Node(ids.Node) (geoconfig.Node, bool)
	Nodes() []geoconfig.Node
	Sites() []geoconfig.Site
	Users() []geoconfig.User
	Watch() (*cluster.Feed, func())
}

// Asker asks nodes, the serving one among them, what they know. The calls end with
// their context.
type Asker interface {
	Status(context.Context, ids.Node) (status.Node, error)
	Net(context.Context, ids.Node) (status.Net, error)
	// Probe has a node measure round trips to others first, so many to each.
	Probe(ctx context.Context, from ids.Node, to []ids.Node, times int) (status.Net, error)
	Slices(context.Context, ids.Node) ([]status.Slice, error)
	Clients(context.Context, ids.Node) ([]status.Client, error)
	// Ready answers nil while the serving node goes on.
	Ready(context.Context) error
}

// Store is the configuration store, as far as it tells of itself.
type Store interface {
	Read(context.Context, geoconfig.Query) (geoconfig.Rows, error)
	Properties(context.Context) (geoconfig.Properties, error)
}

// Past is the node's list of named snapshots and schedules.
type Past interface {
	// Refresh reads the list anew. Where it fails the list is as it was.
	Refresh(context.Context) error
	// All returns the snapshots, the oldest first, and how long ago the list was read;
	// negative: it was not read since the node started.
	All() ([]named.Snapshot, time.Duration)
	// Schedules returns the schedules, by name. Callers do not change them.
	Schedules() []named.Schedule
}

// Options are what Reads are made of. Every field is needed but Past, Settings and
// Experiments.
type Options struct {
	Self      ids.Node
	Site      ids.Site
	Version   string
	Directory Directory
	Store     Store
	Asker     Asker
	// Spaces asks nodes what holds the space of slices.
	Spaces tally.Asker
	// Past has the snapshots and the schedules; nil: they are not shown.
	Past     Past
	Settings []view.Setting
	// Experiments is the folder with the runs of experiments; empty: none.
	Experiments string
	Events      *events.Hub
	Wall        func() time.Time
}

// Reads answers. Close ends what it does besides.
type Reads struct {
	o        Options
	index    *index.Index
	statuses *gather.Nodes[status.Node]
	nets     *gather.Nodes[status.Net]
	lists    *gather.Nodes[[]status.Slice]
	clients  *gather.Nodes[[]status.Client]
	database databaseCache
	drills   drillCache
	activity *auditlog.Log
	runs     *runs.Folder
	tally    *tally.Tally
	// predicting and probing have room for the one under way.
	predicting, probing chan struct{}

	stop context.CancelFunc
	done sync.WaitGroup // what follows the rows, and what watches the nodes
}

// New starts Reads, which follow the configuration and tell the events of it until
// Close.
func New(o Options) *Reads {
	ctx, stop := context.WithCancel(context.Background())
	s := &Reads{o: o, index: index.New(o.Directory), runs: runs.New(o.Experiments), activity: auditlog.New(o.Store, o.Wall), predicting: make(chan struct{}, 1), probing: make(chan struct{}, 1), stop: stop}
	s.statuses = gather.New(o.Wall, o.Asker.Status)
	s.nets = gather.New(o.Wall, o.Asker.Net)
	s.lists = gather.New(o.Wall, o.Asker.Slices)
	s.clients = gather.New(o.Wall, o.Asker.Clients)
	s.tally = tally.New(tally.Options{Asker: o.Spaces, Wall: o.Wall})
	feed, unwatch := o.Directory.Watch()
	s.takeChanges(feed)
	s.done.Go(func() {
		defer unwatch()
		s.follow(ctx, feed)
	})
	s.done.Go(func() { s.watch(ctx) })
	return s
}

// Close ends what follows the configuration. Requests under way go on
// with what is known. It may be called again.
func (s *Reads) Close() {
	s.stop()
	s.statuses.Close()
	s.nets.Close()
	s.lists.Close()
	s.clients.Close()
	s.tally.Close()
	s.done.Wait()
}

// follow keeps the index up to date and tells of changed rows, until ctx ends.
func (s *Reads) follow(ctx context.Context, feed *cluster.Feed) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-feed.Ready():
			s.o.Events.Revision(s.takeChanges(feed))
		}
	}
}

// watch tells the streams how the cluster is, until ctx ends. While no one reads
// them it asks no node.
func (s *Reads) watch(ctx context.Context) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.o.Events.HasReaders() {
				s.o.Events.Status(s.statusNotice(ctx))
			}
		}
	}
}

// takeChanges takes the changed rows in.
func (s *Reads) takeChanges(feed *cluster.Feed) ([]geoconfig.RowKey, ids.Revision) {
	keys, revision := feed.Take()
	s.index.Apply(keys, revision)
	return keys, revision
}
