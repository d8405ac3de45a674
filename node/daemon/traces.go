package daemon

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/telemetry"
	"cartwheel.dev/node/wire"
)

// sendLimit is how long the end of a process may wait for the last spans to go.
const sendLimit = 2 * time.Second

// sendTraces begins to send traces where the configuration names a collector;
// otherwise the tracer is nil. A node follows what others follow, and begins no
// trace itself. stop sends the rest.
func sendTraces(c server.Config, key wire.Key, log *slog.Logger) (tracer wire.Tracer, stop func(), err error) {
	if c.Traces == "" {
		return nil, func() {}, nil
	}
	t, err := telemetry.Open(context.Background(), telemetry.Options{Collector: c.Traces, Service: "cartwheeld", Version: version.String(), Logger: log,
		Attributes: []attribute.KeyValue{attribute.String("service.instance.id", key.KeyID()), attribute.String("cartwheel.site", c.Site)}})
	if err != nil {
		return nil, nil, err
	}
	return t, func() {
		ctx, cancel := context.WithTimeout(context.Background(), sendLimit)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			log.Warn("the last traces were not sent", logattr.Err(err))
		}
	}, nil
}
