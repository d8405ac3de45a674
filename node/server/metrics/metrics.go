// Package metrics shows a node's figures to a monitoring system, in the text
// format of Prometheus, with two answers for whoever asks if the node is alive and
// ready. It counts the requests that the node answered; all else it reads when it
// is asked. A Registry is safe for concurrent use.
package metrics

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/budget"
	"cartwheel.dev/node/server/sharing"
)

// Source is what a Registry reads when it is asked. Every field is needed.
type Source struct {
	// Node tells how the node is.
	Node func(context.Context) status.Node
	// Leading lists the rows of the slices that the node acts for.
	Leading func() []geoconfig.SliceRow
	// JournalBytes is the length of the journal.
	JournalBytes func() int64
	// Shared tells what the node brought for its site's clients.
	Shared func() sharing.Counts
	// Sent tells what content went to other sites.
	Sent func() map[ids.Site]budget.Sent
	// Turn returns once the node's loop has made a turn, or ctx ends.
	Turn func(context.Context) error
}

// Registry has a node's figures.
type Registry struct {
	registry *prometheus.Registry
	requests *Requests
}

// New returns a registry that counts requests and knows nothing of the node yet.
func New() *Registry {
	r := &Registry{registry: prometheus.NewRegistry(), requests: newRequests()}
	r.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		r.requests.seconds, r.requests.failures)
	return r
}

// Requests counts what the node answers.
func (r *Registry) Requests() *Requests { return r.requests }

// scrapeLimit bounds what one question costs.
const scrapeLimit = 5 * time.Second

// Handler answers for a node: /metrics, /healthz (the process runs) and /readyz
// (its loop turns). It may be called once.
func (r *Registry) Handler(s Source) http.Handler {
	r.registry.MustRegister(&node{s})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: scrapeLimit}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "alive\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, q *http.Request) {
		ctx, cancel := context.WithTimeout(q.Context(), scrapeLimit)
		defer cancel()
		if err := s.Turn(ctx); err != nil {
			answer(w, http.StatusServiceUnavailable, "the node's loop does not turn: "+err.Error()+"\n")
			return
		}
		answer(w, http.StatusOK, "ready\n")
	})
	return mux
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // whoever asked has gone
}
