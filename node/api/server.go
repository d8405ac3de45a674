package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/cluster"
	"cartwheel.dev/node/server/identity"
)

// base is the path of all routes but those about the process itself.
const base = "/api/v1"

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
	Slices(context.Context, ids.Node) ([]status.Slice, error)
	// HandOver has a slice's active hand it over; empty: to any other member.
	HandOver(ctx context.Context, row geoconfig.SliceRow, to ids.Node) error
	// Clients lists those that are connected to the serving node.
	Clients(limit int) []identity.Who
	// Ready answers nil while the serving node goes on.
	Ready(context.Context) error
}

// Options are what a Server is made of. Self, Site, Directory, Asker and Store are
// needed.
type Options struct {
	Self    ids.Node
	Site    ids.Site
	Version string
	// Directory is the node's copy of the configuration, Store the configuration
	// itself.
	Directory Directory
	Store     geoconfig.Store
	Asker     Asker
	// Admin is the configuration as an administrator may change it, reached at
	// GeoConfig; nil: sites, nodes, users and tokens cannot be changed here.
	Admin     geoconfig.Store
	GeoConfig []string
	// Auth says who calls; nil: only public routes answer.
	Auth Authenticator
	// Hosts are the names by which requests may call the node, besides localhost
	// and addresses.
	Hosts []string
	// Settings are the node's configuration, for people.
	Settings []Setting
	Logger   *slog.Logger
	Wall     func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	return o
}

// Server serves the API. Close ends it.
type Server struct {
	o        Options
	api      huma.API
	handler  http.Handler
	index    *index
	statuses *gathering[status.Node]
	nets     *gathering[status.Net]
	lists    *gathering[[]status.Slice]
	events   *hub
	database databaseCache
	activity activityCache

	requests, streams, predicting chan struct{} // have room for those in flight

	stop context.CancelFunc
	done sync.WaitGroup // what follows the rows, and what watches the nodes
}

// New starts a Server, which follows the configuration until Close.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{o: o, index: newIndex(o.Directory), events: newHub(o.Wall),
		requests: make(chan struct{}, maxRequests), streams: make(chan struct{}, maxStreams), predicting: make(chan struct{}, 1)}
	s.statuses = newGathering(o.Wall, o.Asker.Status)
	s.nets = newGathering(o.Wall, o.Asker.Net)
	s.lists = newGathering(o.Wall, o.Asker.Slices)
	mux := http.NewServeMux()
	s.api = humago.New(mux, config())
	s.api.UseMiddleware(s.authorize)
	s.register()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problemOf(fault.E(fault.NotFound, "api.New", r.URL.Path, "is no route of this API: "+base+" has them, as openapi.json lists"), requestID(r.Context())).write(w)
	})
	s.handler = s.guard(mux)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	feed, unwatch := o.Directory.Watch()
	s.takeChanges(feed)
	s.done.Go(func() {
		defer unwatch()
		s.follow(ctx, feed)
	})
	s.done.Go(func() { s.watch(ctx) })
	return s
}

// config is huma's configuration: no pages of its own, and our problems.
func config() huma.Config {
	c := huma.DefaultConfig("Cartwheel", "1")
	c.Info.Description = "The admin API of a Cartwheel node."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil
	c.RejectUnknownQueryParameters = true
	c.Transformers = append(c.Transformers, asProblem)
	return c
}

// Handler answers requests.
func (s *Server) Handler() http.Handler { return s.handler }

// OpenAPI returns the description of the API, as JSON.
func (s *Server) OpenAPI() ([]byte, error) { return s.api.OpenAPI().MarshalJSON() }

// Close ends the streams and what follows the configuration. Requests under way go
// on. It may be called again.
func (s *Server) Close() error {
	s.stop()
	s.events.close()
	s.done.Wait()
	return nil
}

// authorize lets a request on to its route where the caller has the role for it.
func (s *Server) authorize(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	op := ctx.Operation()
	p, err := permit(s.o.Auth, r, roles[op.Method+" "+op.Path])
	if err != nil {
		problemOf(err, requestID(ctx.Context())).write(w)
		return
	}
	next(huma.WithValue(ctx, principalKey, p))
}

// follow keeps the index up to date and tells of changed rows, until ctx ends.
func (s *Server) follow(ctx context.Context, feed *cluster.Feed) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-feed.Ready():
			s.events.revision(s.takeChanges(feed))
		}
	}
}

// watch tells the streams how the cluster is, until ctx ends. While no one reads
// them it asks no node.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.events.hasReaders() {
				s.events.status(s.statusNotice(ctx))
			}
		}
	}
}

// takeChanges takes the changed rows in.
func (s *Server) takeChanges(feed *cluster.Feed) ([]geoconfig.RowKey, ids.Revision) {
	keys, revision := feed.Take()
	s.index.apply(keys, revision)
	return keys, revision
}
