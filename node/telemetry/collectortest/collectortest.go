// Package collectortest is a collector of traces on loopback that keeps what it
// gets. It is for tests only, and safe for use by many goroutines.
package collectortest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector has the spans that came.
type Collector struct {
	// URL is where it listens.
	URL string

	mu  sync.Mutex // guards got
	got []Span
}

// Span is a span, and which service it is from.
type Span struct {
	*spans.Span
	Service string
}

// Start starts a collector, which ends with the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" {
			http.NotFound(w, r)
			return
		}
		if err := c.take(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) take(body io.Reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var req collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &req); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range req.ResourceSpans {
		service := ""
		for _, a := range of.Resource.GetAttributes() {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.got = append(c.got, Span{s, service})
			}
		}
	}
	return nil
}

// Spans returns what came so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// Below returns the spans that belong directly to another one.
func (c *Collector) Below(parent Span) []Span {
	return slices.DeleteFunc(c.Spans(), func(s Span) bool {
		return string(s.ParentSpanId) != string(parent.SpanId) || string(s.TraceId) != string(parent.TraceId)
	})
}

// Named returns the spans of a name.
func (c *Collector) Named(name string) []Span {
	return slices.DeleteFunc(c.Spans(), func(s Span) bool { return s.Name != name })
}
