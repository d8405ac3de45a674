package command

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/telemetry"
)

// traceFlags say which operations of a mount are followed over the nodes.
type traceFlags struct {
	Traces string  `help:"Send traces of operations to this OTLP/HTTP collector, such as http://127.0.0.1:4318." placeholder:"URL"`
	Ratio  float64 `name:"trace-ratio" help:"Share of the operations that --traces follows, from 0 to 1." default:"0.01"`
}

// sendLimit is how long the end of a mount may wait for the last spans to go.
const sendLimit = 2 * time.Second

// follow begins to send the traces of a mount, where they are asked for;
// otherwise it returns nil. stop sends the rest.
func (f traceFlags) follow(mount, site string, logger *slog.Logger) (_ *telemetry.Telemetry, stop func(), err error) {
	if f.Traces == "" {
		return nil, func() {}, nil
	}
	t, err := telemetry.Open(context.Background(), telemetry.Options{Collector: f.Traces, Ratio: f.Ratio, Service: "cartwheel mount",
		Version: version.String(), Logger: logger,
		Attributes: []attribute.KeyValue{attribute.String("service.instance.id", mount), attribute.String("cartwheel.site", site)}})
	if err != nil {
		return nil, nil, err
	}
	return t, func() {
		ctx, cancel := context.WithTimeout(context.Background(), sendLimit)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			logger.Warn("the last traces were not sent", logattr.Err(err))
		}
	}, nil
}
