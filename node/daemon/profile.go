package daemon

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
)

// profile serves the profiler where the configuration asks for it: at a socket
// that only this user can open. stop ends it.
func profile(where string, log *slog.Logger) (stop func(), err error) {
	const op fault.Op = "daemon.profile"
	if where == "" {
		return func() {}, nil
	}
	if err := os.Remove(where); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fault.Wrap(fault.IO, op, where, err)
	}
	l, err := listenPrivate(where)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Busy, Op: op, Subject: where, Public: "the profiler cannot listen there", Cause: err}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return serveHTTP(l, mux, "profiler", log), nil
}

// serveHTTP serves until stop is called, which waits for its goroutine.
func serveHTTP(l net.Listener, handler http.Handler, what string, log *slog.Logger) (stop func()) {
	s := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("an HTTP server ended", slog.String("what", what), logattr.Err(err))
		}
	}()
	return func() {
		_ = s.Close() // it serves nobody that matters
		<-done
	}
}

// listenPrivate listens at a socket that is this user's alone from the first
// moment: it is made in a directory of its own and moved.
func listenPrivate(path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), "p")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by then it has another name, which the next start removes
	if err = os.Chmod(at, 0o600); err == nil {
		err = os.Rename(at, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
