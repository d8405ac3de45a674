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

// contextKey names what a request's context has of the API.
type contextKey int

const (
	// secureCookie holds a session's token where the browser speaks https. By its
	// prefix browsers take it from this host alone, and over https alone.
	secureCookie = "__Host-cartwheel-session"
	// plainCookie does so over http, as on a demo's loopback address.
	plainCookie = "cartwheel-session"
	// CSRFHeader carries what GET /session says with each change of a session.
	CSRFHeader = "X-Cartwheel-CSRF"
	// secureVoucher and plainVoucher hold, likewise, a node's word that the session
	// was good.
	secureVoucher = "__Host-cartwheel-voucher"
	plainVoucher  = "cartwheel-voucher"
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
	// voucher is that of its cookie, unchecked.
	voucher string
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
	if cookie, err := r.Cookie(c.voucherName()); err == nil {
		c.voucher = cookie.Value
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

func (c *caller) voucherName() string {
	if c.https {
		return secureVoucher
	}
	return plainVoucher
}

// cookie sets the session's token. It goes when the browser ends; the node ends
// the session by itself.
func (c *caller) cookie(token string) string {
	return c.set(http.Cookie{Name: c.cookieName(), Value: token})
}

// voucherCookie sets a voucher for the session.
func (c *caller) voucherCookie(voucher string) string {
	return c.set(http.Cookie{Name: c.voucherName(), Value: voucher})
}

// noCookies takes both away.
func (c *caller) noCookies() []string {
	return []string{c.set(http.Cookie{Name: c.cookieName(), MaxAge: -1}), c.set(http.Cookie{Name: c.voucherName(), MaxAge: -1})}
}

// set gives a cookie to this host's pages alone, and to none of their scripts.
func (c *caller) set(k http.Cookie) string {
	k.Path, k.HttpOnly, k.Secure, k.SameSite = "/", true, c.https, http.SameSiteStrictMode
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
	a.People.Accept(c.token, c.voucher)
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
