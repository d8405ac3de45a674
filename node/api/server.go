package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/events"
	"cartwheel.dev/node/api/problem"
	"cartwheel.dev/node/api/reads"
	"cartwheel.dev/node/api/tally"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/people"
	"cartwheel.dev/node/people/issuer"
)

// Asker asks nodes, the serving one among them, what they know, and orders.
type Asker interface {
	reads.Asker
	// HandOver has a slice's active hand it over; empty: to any other member.
	HandOver(ctx context.Context, row geoconfig.SliceRow, to ids.Node) error
	// Scrub has a node read all that it stores, at a rate in bytes a second; 0: the usual
	// one. It returns the round's number.
	Scrub(ctx context.Context, id ids.Node, rate int64) (uint64, error)
	tally.Asker
}

// Options are what a Server is made of. Self, Site, Directory, Asker and Store are
// needed.
type Options struct {
	Self    ids.Node
	Site    ids.Site
	Version string
	// Directory is the node's copy of the configuration, Store the configuration
	// itself.
	Directory reads.Directory
	Store     geoconfig.Store
	Asker     Asker
	// Admin is the configuration as an administrator may change it, reached at
	// GeoConfig; nil: sites, nodes, users and tokens cannot be changed here.
	Admin     geoconfig.Store
	GeoConfig []string
	// Past has the snapshots and the schedules, and makes and deletes them; nil: they are
	// not shown.
	Past Past
	// Auth says who calls; nil: only public routes answer.
	Auth Authenticator
	// People are those who sign in to the console; nil: none.
	People *people.Service
	// Issuer is the OIDC provider; nil: none.
	Issuer *issuer.Client
	// Proxies are the addresses of gateways, beside those of this machine: what they
	// say of where a request came from is believed.
	Proxies []netip.Prefix
	// Hosts are the names by which requests may call the node, besides localhost
	// and addresses.
	Hosts []string
	// Settings are the node's configuration, for people.
	Settings []view.Setting
	// Experiments is the folder with the runs of experiments; empty: none.
	Experiments string
	Logger      *slog.Logger
	Wall        func() time.Time
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
	o       Options
	api     huma.API
	handler http.Handler
	events  *events.Hub
	reads   *reads.Reads

	requests, streams chan struct{} // have room for those in flight

	stop context.CancelFunc // ends what done counts
	done sync.WaitGroup
}

// New starts a Server, which follows the configuration until Close.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{o: o, events: events.New(), requests: make(chan struct{}, maxRequests), streams: make(chan struct{}, maxStreams), stop: func() {}}
	s.reads = reads.New(reads.Options{Self: o.Self, Site: o.Site, Version: o.Version, Directory: o.Directory, Store: o.Store,
		Asker: o.Asker, Spaces: o.Asker, Past: o.Past, Settings: o.Settings, Experiments: o.Experiments, Events: s.events, Wall: o.Wall})
	mux := http.NewServeMux()
	s.api = humago.New(mux, config())
	s.api.UseMiddleware(s.authorize)
	s.register()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem.Of(fault.E(fault.NotFound, "api.New", r.URL.Path, "is no route of this API: "+base+" has them, as openapi.json lists"), requestID(r.Context())).Write(w)
	})
	s.handler = s.guard(mux)
	if o.People != nil {
		ctx, stop := context.WithCancel(context.Background())
		s.stop = stop
		s.done.Go(func() { s.sweep(ctx) })
	}
	return s
}

// config is huma's configuration: no pages of its own, and our problems.
func config() huma.Config {
	c := huma.DefaultConfig("Cartwheel", "1")
	c.Info.Description = "The admin API of a Cartwheel node."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil
	c.RejectUnknownQueryParameters = true
	c.Transformers = append(c.Transformers, func(ctx huma.Context, _ string, v any) (any, error) {
		return problem.Transform(v, requestID(ctx.Context())), nil
	})
	return c
}

// Handler answers requests.
func (s *Server) Handler() http.Handler { return s.handler }

// OpenAPI returns the description of the API, as JSON.
func (s *Server) OpenAPI() ([]byte, error) { return s.api.OpenAPI().MarshalJSON() }

// Close ends the streams and what follows the configuration. Requests under way go
// on. It may be called again.
func (s *Server) Close() error {
	s.events.Close()
	s.reads.Close()
	s.stop()
	s.done.Wait()
	return nil
}

// authorize lets a request on to its route where the caller has the role for it.
func (s *Server) authorize(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	op := ctx.Operation()
	p, err := permit(s.o.Auth, r, roles[op.Method+" "+op.Path])
	if err != nil {
		problem.Of(err, requestID(ctx.Context())).Write(w)
		return
	}
	s.vouch(ctx)
	next(huma.WithValue(ctx, principalKey, p))
}

// vouch gives a caller in a session what makes other nodes believe in it while the
// store is away.
func (s *Server) vouch(ctx huma.Context) {
	c := callerOf(ctx.Context())
	if c.session.ID == "" {
		return
	}
	if v := s.o.People.Vouch(c.session, c.voucher); v != "" {
		ctx.AppendHeader("Set-Cookie", c.voucherCookie(v))
	}
}

// sweepEvery is how often expired sessions and links are removed. They do not
// count any more before.
const sweepEvery = time.Hour

// sweep removes what has expired, until ctx ends. A store that is away is asked
// again an hour later.
func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := s.o.People.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.o.Logger.Warn("expired sessions were not removed", logattr.Err(err))
			}
		}
	}
}
