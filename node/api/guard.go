package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/problem"
	"cartwheel.dev/node/logattr"
)

const (
	// maxBody bounds a request's body.
	maxBody = 64 << 10
	// maxRequests bounds the requests in flight. One more is told "overloaded".
	maxRequests = 64
	// maxStreams bounds the event streams. One more is told "overloaded".
	maxStreams = 256
	// requestLimit bounds a request's time, that of a stream of events excepted.
	requestLimit = 15 * time.Second
)

const (
	idKey contextKey = iota
	principalKey
)

// requestID returns the name of the request that ctx belongs to.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(idKey).(string)
	return id
}

// principal returns the account that a request acts for.
func principal(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey).(Principal)
	return p
}

// guard names each request, and refuses those for another host, those that a page
// of another origin sent, and those beyond a bound.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var raw [8]byte
		_, _ = rand.Read(raw[:]) // never fails
		id := hex.EncodeToString(raw[:])
		w.Header().Set("X-Request-Id", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		r = withCaller(r.WithContext(context.WithValue(r.Context(), idKey, id)), s.o.Proxies)
		if err := s.screen(r, cross); err != nil {
			problem.Of(err, id).Write(w)
			return
		}
		room := s.requests
		if isStream(r) {
			room = s.streams
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		default:
			problem.Of(fault.E(fault.Overloaded, "api.guard", r.URL.Path, "too many requests are in flight at this node"), id).Write(w)
			return
		}
		if !isStream(r) {
			ctx, cancel := context.WithTimeout(r.Context(), requestLimit)
			defer cancel()
			r = r.WithContext(ctx)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// screen refuses a request by its headers alone.
func (s *Server) screen(r *http.Request, cross *http.CrossOriginProtection) error {
	if !s.allowsHost(r.Host) {
		return fault.E(fault.WrongCluster, "api.screen", r.Host, "is no name of this node: add it to api_hosts, or call the node by its address")
	}
	sent := r
	if isChange(r) { // also where a server beside the API asks with GET
		sent = r.WithContext(r.Context())
		sent.Method = http.MethodPost
	}
	if err := cross.Check(sent); err != nil {
		return fault.E(fault.Permission, "api.screen", r.Header.Get("Origin"), "a page of another origin may not send this")
	}
	return nil
}

// allowsHost reports whether a request may name a host. A name that is not listed
// may have been pointed at this node by someone else (DNS rebinding); an address
// cannot be.
func (s *Server) allowsHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(s.o.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

func isStream(r *http.Request) bool { return r.URL.Path == base+"/events" }

// logFailure logs a failure that is the node's own fault.
func (s *Server) logFailure(ctx context.Context, p *problem.Problem, err error) {
	if p.Status == http.StatusInternalServerError {
		s.o.Logger.Error("a request of the API failed", slog.String("request", requestID(ctx)), slog.String("code", p.Code), logattr.Err(err))
	}
}
