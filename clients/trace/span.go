package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"cartwheel.dev/geo-config/fault"
)

// follow begins the operation's span, where the tracer follows it.
func (o *Operation) follow(t oteltrace.Tracer) {
	ctx, span := t.Start(context.Background(), o.kind.String())
	if span.IsRecording() {
		o.ctx = ctx
	}
}

// endSpan ends the operation's span with its counts.
func (o *Operation) endSpan() {
	if o.ctx == nil {
		return
	}
	span := oteltrace.SpanFromContext(o.ctx)
	span.SetAttributes(attribute.Int("cartwheel.calls", int(o.calls.Load())), attribute.Int("cartwheel.wan", int(o.wan.Load())),
		attribute.Int("cartwheel.local", int(o.local.Load())))
	span.End()
}

// Span is the part of a followed operation that is one call. The zero Span is of
// an operation that is not followed.
type Span struct{ span oteltrace.Span }

// Call begins the span of a call, named after its method. The context that it
// returns is ctx, and carries the span to the node that answers.
func (o *Operation) Call(ctx context.Context, method string) (context.Context, Span) {
	if o == nil || o.ctx == nil {
		return ctx, Span{}
	}
	parent := oteltrace.SpanFromContext(o.ctx)
	_, span := parent.TracerProvider().Tracer(scope).Start(o.ctx, "call "+method, oteltrace.WithSpanKind(oteltrace.SpanKindClient))
	return oteltrace.ContextWithSpan(ctx, span), Span{span}
}

// scope names the library that makes spans.
const scope = "cartwheel.dev"

// End ends the span of a call that went to a node at a site.
func (s Span) End(peer, site string, err error) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(attribute.String("cartwheel.peer", peer), attribute.String("cartwheel.site", site))
	if err != nil {
		s.span.SetStatus(codes.Error, fault.KindOf(err).String())
	}
	s.span.End()
}
