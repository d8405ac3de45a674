package daemon

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// profile serves the profiler where the configuration asks for it: a socket
// that only this user can open, or a loopback address. stop ends it.
func profile(where string, log *slog.Logger) (stop func(), err error) {
	const op fault.Op = "daemon.profile"
	if where == "" {
		return func() {}, nil
	}
	network := "tcp"
	if strings.HasPrefix(where, "/") {
		network = "unix"
		if err := os.Remove(where); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fault.Wrap(fault.IO, op, where, err)
		}
	}
	l, err := net.Listen(network, where)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Busy, Op: op, Subject: where, Public: "the profiler cannot listen there", Cause: err}
	}
	if network == "unix" {
		if err := os.Chmod(where, 0o600); err != nil {
			return nil, errors.Join(fault.Wrap(fault.IO, op, where, err), l.Close())
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the profiler ended", "error", err)
		}
	}()
	return func() {
		_ = s.Close() // it serves nobody that matters
		<-done
	}, nil
}
