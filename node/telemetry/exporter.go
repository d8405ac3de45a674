package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/logattr"
)

// complaining is an exporter that tells the log of its failures, now and then.
type complaining struct {
	sdk.SpanExporter
	logger *slog.Logger
	clock  boottime.Func

	mu   sync.Mutex    // guards below
	next time.Duration // of clock: the first moment for another line
	lost int           // spans since the last line
}

// ExportSpans implements sdk.SpanExporter. It returns no error: the library would
// print it beside the log.
func (c *complaining) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := c.SpanExporter.ExportSpans(ctx, spans); err != nil {
		if lost := c.note(len(spans)); lost > 0 {
			c.logger.Warn("traces do not arrive", slog.Int("spans", lost), logattr.Err(err))
		}
	}
	return nil
}

// note counts lost spans, and returns how many to tell of; 0: it is too soon.
func (c *complaining) note(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost += n
	now := c.clock()
	if now < c.next {
		return 0
	}
	c.next = now + complainEvery
	told := c.lost
	c.lost = 0
	return told
}
