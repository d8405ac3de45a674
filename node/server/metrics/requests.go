package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/wire"
)

// Requests counts the requests that a node answered, by method, and how long the
// answers took, from the arrival of the request. Its methods are safe for
// concurrent use and do not block.
type Requests struct {
	seconds  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	// byMethod has the histogram of each method that has a name, and unnamed the
	// one of all others: a peer may call any number.
	byMethod map[wire.Method]prometheus.Observer
	unnamed  prometheus.Observer
}

const unnamedMethod = "unknown"

func newRequests() *Requests {
	r := &Requests{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cartwheel_request_seconds", Help: "Time from the arrival of a request to its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"method"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cartwheel_request_failures_total", Help: "Requests that were answered with a fault, by its kind.",
		}, []string{"method", "kind"}),
		byMethod: map[wire.Method]prometheus.Observer{},
	}
	r.unnamed = r.seconds.WithLabelValues(unnamedMethod)
	for _, m := range method.Named() {
		r.byMethod[m] = r.seconds.WithLabelValues(method.Name(m))
	}
	return r
}

// Answered counts a request. A kind of None is an answer without a fault.
func (r *Requests) Answered(m wire.Method, took time.Duration, kind fault.Kind) {
	o, named := r.byMethod[m]
	name := unnamedMethod
	if named {
		name = method.Name(m)
	} else {
		o = r.unnamed
	}
	o.Observe(took.Seconds())
	if kind != fault.None {
		r.failures.WithLabelValues(name, kind.String()).Inc()
	}
}
