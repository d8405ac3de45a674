//go:build linux

package cartwheel_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/telemetry"
	"cartwheel.dev/node/telemetry/collectortest"
)

// TestSpans_FollowAnOperationToTheNodes makes a file through a mount, and finds in
// the collector which call of which operation made it at the node.
func TestSpans_FollowAnOperationToTheNodes(t *testing.T) {
	collector := collectortest.Start(t)
	open := func(service string, ratio float64) *telemetry.Telemetry {
		tele, err := telemetry.Open(t.Context(), telemetry.Options{Collector: collector.URL, Ratio: ratio, Service: service})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tele.Close(context.Background()) }) // closed already, if the test went well
		return tele
	}
	client, nodes := open("mount", 1), open("node", 0)
	c := servertest.Start(t, servertest.Options{Depend: func(_ int, d *server.Deps) { d.Tracer = nodes }})
	cl := opened(t, c, cartwheel.Options{Site: "a", Telemetry: client})
	t.Run("mounted", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(mounted(t, cl), "hello.txt"), []byte("hello"), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	if err := cl.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tele := range []*telemetry.Telemetry{client, nodes} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if err := tele.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}
	var paths []string
	for _, root := range collector.Spans() {
		if len(root.ParentSpanId) != 0 || root.Service != "mount" {
			continue
		}
		for _, call := range collector.Below(root) {
			for _, served := range collector.Below(call) {
				paths = append(paths, root.Name+" > "+call.Name+" > "+served.Service+" "+served.Name)
			}
		}
	}
	if !slices.ContainsFunc(paths, func(p string) bool { return strings.HasSuffix(p, " > call operate > node serve operate") }) {
		t.Errorf("got %q, want an operation that a node carried out", paths)
	}
	for _, s := range collector.Spans() {
		if strings.Contains(s.String(), "hello.txt") {
			t.Errorf("a file's name is in a span: %v", s.Span)
		}
		if s.Service == "node" && len(s.ParentSpanId) == 0 {
			t.Errorf("a node began a trace of its own: %v", s.Span)
		}
	}
}
