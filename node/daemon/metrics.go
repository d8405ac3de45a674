package daemon

import (
	"log/slog"
	"net"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/metrics"
)

// figures are what a node shows to a monitoring system. The zero value shows
// nothing.
type figures struct {
	registry *metrics.Registry
	listener net.Listener
}

// listenFigures listens where the configuration asks for it, before the node
// starts: an address that is taken ends the start at once.
func listenFigures(where string) (figures, error) {
	if where == "" {
		return figures{}, nil
	}
	l, err := net.Listen("tcp", where)
	if err != nil {
		return figures{}, &fault.Error{Kind: fault.Busy, Op: "daemon.listenFigures", Subject: "metrics", Public: "the node cannot listen at " + where + ": choose another address", Cause: err}
	}
	return figures{metrics.New(), l}, nil
}

// show serves the figures of a node that has started. stop ends it, before the
// node closes.
func (f figures) show(s *server.Server, log *slog.Logger) (stop func()) {
	if f.listener == nil {
		return func() {}
	}
	return serveHTTP(f.listener, f.registry.Handler(s.Figures()), "metrics", log)
}

// drop closes the listener of a node that did not start.
func (f figures) drop() {
	if f.listener != nil {
		_ = f.listener.Close() // it took no connection
	}
}
