package api

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/people"
)

const (
	// secureCookie holds a session's token where the browser speaks https. By its
	// prefix browsers take it from this host alone, and over https alone.
	secureCookie = "__Host-cartwheel-session"
	// plainCookie does so over http, as on a demo's loopback address.
	plainCookie = "cartwheel-session"
	// CSRFHeader carries what GET /session says with each change of a session.
	CSRFHeader = "X-Cartwheel-CSRF"
	// callerKey is where a request's context has its caller.
	callerKey contextKey = 100
)

// caller is what a request shows of whoever sent it.
type caller struct {
	origin people.Origin
	// https says that the browser speaks it, to this node or to a proxy.
	https bool
	// token is that of the session's cookie; empty: none.
	token string
	// session is set where the token was found good.
	session people.Session
}

// callerOf returns the caller of a request's context.
func callerOf(ctx context.Context) *caller {
	c, ok := ctx.Value(callerKey).(*caller)
	if !ok {
		return &caller{}
	}
	return c
}

// withCaller reads a request's caller. What proxies add is believed only of those
// that are trusted.
func withCaller(r *http.Request, proxies []netip.Prefix) *http.Request {
	c := &caller{origin: people.Origin{Address: hostOf(r.RemoteAddr), Agent: r.UserAgent()}, https: r.TLS != nil}
	if isTrusted(c.origin.Address, proxies) {
		// The last address is the one that the trusted proxy saw itself.
		if seen := r.Header.Values("X-Forwarded-For"); len(seen) > 0 {
			list := strings.Split(seen[len(seen)-1], ",")
			if far, err := netip.ParseAddr(strings.TrimSpace(list[len(list)-1])); err == nil {
				c.origin.Address = far.String()
			}
		}
		c.https = c.https || r.Header.Get("X-Forwarded-Proto") == "https"
	}
	if cookie, err := r.Cookie(c.cookieName()); err == nil {
		c.token = cookie.Value
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey, c))
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// isTrusted reports whether an address is that of a proxy: one of this machine, or
// one of those named.
func isTrusted(address string, proxies []netip.Prefix) bool {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	a = a.Unmap()
	return a.IsLoopback() || slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// cookieName is the name of the only cookie that counts for the caller. Over https
// the plain one does not: someone on the way could have set it.
func (c *caller) cookieName() string {
	if c.https {
		return secureCookie
	}
	return plainCookie
}

// cookie sets the session's token, or with an empty one takes it away. It goes
// when the browser ends; the node ends the session by itself.
func (c *caller) cookie(token string) string {
	k := http.Cookie{Name: c.cookieName(), Value: token, Path: "/", HttpOnly: true, Secure: c.https, SameSite: http.SameSiteStrictMode}
	if token == "" {
		k.MaxAge = -1
	}
	return k.String()
}

// Sessions is an Authenticator for people: a request shows a session's cookie, and
// with each change also CSRFHeader, which no page of another origin can know.
// Requests that show an Authorization go to Programs instead. It is safe for
// concurrent use.
type Sessions struct {
	People *people.Service
	// Programs says who shows an Authorization; nil: nobody.
	Programs Authenticator
}

var _ Authenticator = Sessions{}

// Authenticate implements Authenticator.
func (a Sessions) Authenticate(r *http.Request) (Principal, error) {
	const op fault.Op = "api.Authenticate"
	if r.Header.Get("Authorization") != "" && a.Programs != nil {
		return a.Programs.Authenticate(r)
	}
	c := callerOf(r.Context())
	if c.token == "" {
		return Principal{}, fault.E(fault.Unauthorized, op, "", "you are not signed in")
	}
	session, err := a.People.Authenticate(r.Context(), c.token)
	if err != nil {
		return Principal{}, err
	}
	if isChange(r) && subtle.ConstantTimeCompare([]byte(r.Header.Get(CSRFHeader)), []byte(people.CSRF(c.token))) != 1 {
		return Principal{}, fault.E(fault.Permission, op, CSRFHeader, "is missing or not that of the session: GET /session says it")
	}
	c.session = session
	return Principal{Name: "account/" + session.Account, Role: roleOf(session.Role)}, nil
}

// isChange reports whether a request may change anything, here or at the server
// beside the API that asks for it.
func isChange(r *http.Request) bool {
	return r.URL.Path == changePath || r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

func roleOf(r people.Role) Role {
	switch r {
	case people.Viewer:
		return Viewer
	case people.Operator:
		return Operator
	case people.Administrator:
		return Administrator
	}
	return denied
}
