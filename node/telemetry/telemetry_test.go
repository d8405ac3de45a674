package telemetry_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/telemetry"
	"cartwheel.dev/node/telemetry/collectortest"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

func opened(t *testing.T, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	o.Version = "1"
	tele, err := telemetry.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tele
}

func ended(t *testing.T, all ...*telemetry.Telemetry) {
	t.Helper()
	for _, tele := range all {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if err := tele.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

// pair makes two hosts, each with its telemetry; the second answers Status, or
// fails with a text that tells a secret.
func pair(t *testing.T, first, second *telemetry.Telemetry) (*wire.Host, *wire.Host) {
	a, b := wiretest.Pair(t, func(i int, o *wire.Options) { o.Tracer = []wire.Tracer{first, second}[i] })
	b.Spawn(method.Status, func(_ context.Context, r *wire.Request) { r.Reply(&pb.StatusResponse{Status: []byte("{}")}) })
	b.Spawn(method.SliceList, func(_ context.Context, r *wire.Request) { r.Fail(fault.E(fault.NotFound, "op", "secret.txt", "")) })
	return a, b
}

func TestTelemetry_FollowsACallToItsNode(t *testing.T) {
	c := collectortest.Start(t)
	first := opened(t, telemetry.Options{Collector: c.URL, Ratio: 1, Service: "mount"})
	second := opened(t, telemetry.Options{Collector: c.URL + "/v1/traces", Service: "node"})
	a, b := pair(t, first, second)
	ctx, span := first.Tracer().Start(t.Context(), "lookup")
	if _, err := a.Call(ctx, b.KeyID(), wire.Operation, method.Status, &pb.StatusRequest{}, nil, &pb.StatusResponse{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(ctx, b.KeyID(), wire.Operation, method.SliceList, &pb.SliceListRequest{}, nil, nil); !fault.Is(err, fault.NotFound) {
		t.Fatalf("got %v, want the other host's error", err)
	}
	span.End()
	ended(t, first, second)
	root := c.Named("lookup")
	if len(root) != 1 || root[0].Service != "mount" {
		t.Fatalf("got %v, want one lookup of the mount", c.Spans())
	}
	served := c.Below(root[0])
	if len(served) != 2 {
		t.Fatalf("got %v, want two requests below the lookup", served)
	}
	for _, s := range served {
		failed := s.Name == "serve "+method.Name(method.SliceList)
		if s.Service != "node" || s.Kind != tracepb.Span_SPAN_KIND_SERVER || failed != (s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR) {
			t.Errorf("got %v of %s", s.Span, s.Service)
		}
		if strings.Contains(s.String(), "secret") {
			t.Errorf("a file's name leaves the cluster: %v", s.Span)
		}
	}
}

func TestTelemetry_SendsNothingOfWhatIsNotFollowed(t *testing.T) {
	c := collectortest.Start(t)
	tele := opened(t, telemetry.Options{Collector: c.URL, Ratio: 0, Service: "both"})
	a, b := pair(t, tele, tele)
	ctx, span := tele.Tracer().Start(t.Context(), "lookup")
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if _, carried := tele.Outgoing(ctx); carried {
			t.Error("a call carries a trace that nobody follows")
		}
		if _, err := a.Call(ctx, b.KeyID(), wire.Operation, method.Status, &pb.StatusRequest{}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	span.End()
	if ended(t, tele); len(c.Spans()) != 0 {
		t.Errorf("got %v, want nothing", c.Spans())
	}
}

func TestTelemetry_DoesNotWaitForItsCollector(t *testing.T) {
	var log bytes.Buffer
	tele := opened(t, telemetry.Options{Collector: "http://127.0.0.1:1", Ratio: 1, Service: "mount", // nobody listens there
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Clock: func() time.Duration { return 0 }})
	a, b := pair(t, tele, tele)
	for range 1000 {
		ctx, span := tele.Tracer().Start(t.Context(), "lookup")
		if _, err := a.Call(ctx, b.KeyID(), wire.Operation, method.Status, &pb.StatusRequest{}, nil, nil); err != nil {
			t.Fatal(err)
		}
		span.End()
	}
	ended(t, tele)
	if n := strings.Count(log.String(), "traces do not arrive"); n != 1 {
		t.Errorf("got %d lines in a minute, want one: %s", n, &log)
	}
}

func TestOpen_RefusesWhatIsNoCollector(t *testing.T) {
	for _, o := range []telemetry.Options{{Collector: ""}, {Collector: "127.0.0.1:4318"}, {Collector: "grpc://a"}, {Collector: "http://"},
		{Collector: "http://a", Ratio: -0.1}, {Collector: "http://a", Ratio: 1.1}} {
		if _, err := telemetry.Open(t.Context(), o); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: got %v, want Invalid", o, err)
		}
		if o.Ratio == 0 && telemetry.IsCollector(o.Collector) {
			t.Errorf("%q is taken for a collector", o.Collector)
		}
	}
	if !telemetry.IsCollector("https://collector.example:4318/tenant") {
		t.Error("a collector with a path of its own is refused")
	}
}
