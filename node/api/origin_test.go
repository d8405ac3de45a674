package api

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestOrigin_BelievesOnlyTrustedServers(t *testing.T) {
	for name, c := range map[string]struct{ from, passed, want string }{
		"direct":                   {"192.0.2.7:99", "", "192.0.2.7"},
		"far, with a claim":        {"192.0.2.7:99", "198.51.100.1", "192.0.2.7"},
		"passed on by this host":   {"127.0.0.1:99", "198.51.100.1", "198.51.100.1"},
		"a claim before the proxy": {"[::1]:99", "203.0.113.9, 198.51.100.1", "198.51.100.1"},
		"a gateway that is named":  {"192.0.2.200:9", "198.51.100.1", "198.51.100.1"},
		"local, no proxy":          {"127.0.0.1:99", "", "127.0.0.1"},
		"local, nonsense":          {"127.0.0.1:99", "x", "127.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: c.from, Header: http.Header{"X-Forwarded-For": {c.passed}}}
		if got := callerOf(withCaller(r, []netip.Prefix{netip.MustParsePrefix("192.0.2.192/28")}).Context()).origin.Address; got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
