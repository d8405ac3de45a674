// Package telemetry sends traces of operations to a collector, by OpenTelemetry's
// protocol over HTTP. A trace begins with a file operation of a mount, and follows
// its calls through every node that works for it: a call carries the trace's
// number behind its message (package wire). What is sent says which operation took
// how long where; it names no file and no content.
//
// One Telemetry serves a process, and is safe for use by many goroutines. Spans
// that the collector does not take in time are dropped, never waited for.
package telemetry

import (
	"context"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/wire"
)

// Limits of what waits for the collector.
const (
	// maxQueued bounds the ended spans that wait: further ones are dropped.
	maxQueued = 4096
	// maxBatch bounds the spans of one request to the collector.
	maxBatch = 512
	// exportLimit is how long one request may take; its spans are then dropped.
	exportLimit = 10 * time.Second
	// complainEvery is the pause between two lines of the log about a collector.
	complainEvery = time.Minute
)

// Options say where traces go.
type Options struct {
	// Collector is the URL of an OTLP/HTTP collector, such as
	// http://127.0.0.1:4318. Where it has no path, spans go to /v1/traces.
	Collector string
	// Ratio is the share of the operations of this process that is followed, 0 to
	// 1. A call from a process that follows its operation is always followed.
	Ratio float64
	// Service is the kind of process, such as cartwheeld.
	Service string
	// Version is the program's.
	Version string
	// Attributes tell this process from others of its kind.
	Attributes []attribute.KeyValue
	// Logger hears, once a minute at most, why spans do not arrive.
	Logger *slog.Logger
	// Clock measures that minute; nil: boottime.Default.
	Clock boottime.Func
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = boottime.Default()
	}
	return o
}

// IsCollector reports whether a text is the URL of a collector.
func IsCollector(text string) bool {
	_, err := endpoint(text)
	return err == nil
}

// endpoint returns to where spans are posted.
func endpoint(collector string) (string, error) {
	const op fault.Op = "telemetry.endpoint"
	u, err := url.Parse(collector)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fault.Errorf(fault.Invalid, op, "traces", "%q is no URL of a collector: write it as http://HOST:4318", collector)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// Telemetry makes spans and sends them.
type Telemetry struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Open begins to send; it does not wait for the collector. Error: Invalid, the URL
// or the ratio. The caller must Close what it returns.
func Open(ctx context.Context, o Options) (*Telemetry, error) {
	const op fault.Op = "telemetry.Open"
	to, err := endpoint(o.Collector)
	if err != nil {
		return nil, err
	}
	if !(o.Ratio >= 0 && o.Ratio <= 1) {
		return nil, fault.Errorf(fault.Invalid, op, "trace ratio", "%v is no share: from 0 to 1", o.Ratio)
	}
	o = o.withDefaults()
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to), otlptracehttp.WithTimeout(exportLimit),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}))
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Op: op, Subject: "traces", Cause: err}
	}
	attributes := append([]attribute.KeyValue{attribute.String("service.name", o.Service), attribute.String("service.version", o.Version)}, o.Attributes...)
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(&complaining{SpanExporter: exporter, logger: o.Logger, clock: o.Clock},
			sdk.WithMaxQueueSize(maxQueued), sdk.WithMaxExportBatchSize(maxBatch), sdk.WithExportTimeout(exportLimit)),
		sdk.WithResource(resource.NewSchemaless(attributes...)),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Ratio))))
	return &Telemetry{provider: provider, tracer: provider.Tracer("cartwheel.dev")}, nil
}

// Close sends what has ended, for as long as ctx lasts, and ends the sending.
func (t *Telemetry) Close(ctx context.Context) error {
	return fault.Wrap(fault.Unreachable, "telemetry.Close", "traces", t.provider.Shutdown(ctx))
}

// Tracer makes the spans of this process's own operations.
func (t *Telemetry) Tracer() trace.Tracer { return t.tracer }

var _ wire.Tracer = (*Telemetry)(nil)

// Outgoing implements wire.Tracer: a trace that is not followed is not sent.
func (t *Telemetry) Outgoing(ctx context.Context) (wire.Trace, bool) {
	s := trace.SpanContextFromContext(ctx)
	if !s.IsSampled() {
		return wire.Trace{}, false
	}
	return wire.Trace{ID: s.TraceID(), Span: s.SpanID(), Flags: byte(s.TraceFlags())}, true
}

// Serve implements wire.Tracer.
func (t *Telemetry) Serve(ctx context.Context, peer string, m wire.Method, parent wire.Trace) (context.Context, func(error)) {
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: parent.ID, SpanID: parent.Span, TraceFlags: trace.TraceFlags(parent.Flags), Remote: true})
	ctx, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, remote), "serve "+method.Name(m),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("cartwheel.peer", peer)))
	return ctx, func(err error) {
		Fail(span, err)
		span.End()
	}
}

// Fail notes in a span the kind of an error, and not its text, which may name
// files; nil notes nothing.
func Fail(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, fault.KindOf(err).String())
	}
}
