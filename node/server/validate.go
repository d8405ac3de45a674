package server

import (
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/registration"
	"cartwheel.dev/node/telemetry"
)

// maxRetention bounds for how long what is deleted is kept: ten years.
const maxRetention = 10 * 366 * 24 * time.Hour

// Validate returns one error that lists every problem, or nil.
func (c Config) Validate() error {
	const op fault.Op = "server.Validate"
	var p problems
	p.check(c.Version >= 1 && c.Version <= ConfigVersion, "version", "is %d; this program reads up to %d", c.Version, ConfigVersion)
	p.check(c.Data != "", "data", "is missing: name the node's directory")
	p.check(c.Site != "", "site", "is missing: name the node's site")
	p.check(validSite(c.Site) || c.Site == "", "site", "%q is no site name: letters, digits, '-' and '_', to 63", c.Site)
	p.check(len(c.Listen) > 0, "listen", "is empty: give an address such as /ip4/0.0.0.0/tcp/7400")
	for _, a := range c.Listen {
		p.check(strings.HasPrefix(a, "/"), "listen", "%q is no multiaddress: write it as /ip4/ADDRESS/tcp/PORT", a)
	}
	for _, a := range c.Advertise {
		p.check(strings.HasPrefix(a, "/"), "advertise", "%q is no multiaddress: write it as /ip4/ADDRESS/tcp/PORT", a)
	}
	p.check(c.Socket == "" || c.Socket == registration.NoSocket || filepath.IsAbs(c.Socket), "socket", "%q is neither an absolute path nor %q", c.Socket, registration.NoSocket)
	for _, a := range c.GeoConfig {
		p.check(strings.Contains(a, "/p2p/"), "geo_config", "%q lacks the server's identity: end it with /p2p/ID", a)
	}
	p.check(c.ExpectedNodes >= 1, "expected_nodes", "is %d; at least 1", c.ExpectedNodes)
	p.check(c.Lease >= 100*time.Millisecond && c.Lease <= time.Minute, "lease", "is %v; between 100ms and 1m", c.Lease)
	p.check(c.Session >= 100*time.Millisecond && c.Session <= time.Minute, "session", "is %v; between 100ms and 1m", c.Session)
	p.check(c.FailedAfter >= time.Second, "failed_after", "is %v; at least 1s", c.FailedAfter)
	p.check(c.SiteSpread >= 2*time.Millisecond && c.SiteSpread <= time.Minute, "site_spread", "is %v; between 2ms and 1m", c.SiteSpread)
	p.check(c.Retention >= 0 && c.Retention <= maxRetention, "retention", "is %v; between 0 (give space back soon) and %v", c.Retention, maxRetention)
	p.check(c.RetentionLeast >= 0 && c.RetentionLeast <= c.Retention, "retention_least", "is %v; between 0 and retention (%v)", c.RetentionLeast, c.Retention)
	p.check(c.UploadGrace >= time.Second && c.UploadGrace <= maxRetention, "upload_grace", "is %v; between 1s and %v", c.UploadGrace, maxRetention)
	p.check(c.ScrubPeriod == 0 || c.ScrubPeriod >= time.Minute && c.ScrubPeriod <= maxRetention, "scrub_period", "is %v; 0 (only when ordered), or between 1m and %v", c.ScrubPeriod, maxRetention)
	c.Sizes.validate(&p)
	p.check(c.RegistrationLife >= time.Second, "registration_life", "is %v; at least 1s", c.RegistrationLife)
	p.check(c.MaxSliceObjects >= 1, "max_slice_objects", "is 0")
	p.check(c.Shared >= 0 && c.Shared <= time.Hour, "shared", "is %v; at most 1h", c.Shared)
	p.check(c.MaxSessions >= 1, "max_sessions", "is %d; at least 1", c.MaxSessions)
	p.check(c.MaxLeases >= 1, "max_leases", "is %d; at least 1", c.MaxLeases)
	p.check(c.MaxLocks >= 1, "max_locks", "is %d; at least 1", c.MaxLocks)
	p.check(c.MaxWaitingLocks >= 4, "max_waiting_locks", "is %d; at least 4", c.MaxWaitingLocks)
	p.check(c.MaxUserSessions >= 1, "max_user_sessions", "is %d; at least 1", c.MaxUserSessions)
	p.check(c.MaxUserLeases >= 1, "max_user_leases", "is %d; at least 1", c.MaxUserLeases)
	p.check(c.MaxUserHolds >= 1, "max_user_holds", "is %d; at least 1", c.MaxUserHolds)
	p.check(c.MaxUserStagedBytes >= 1<<20, "max_user_staged_bytes", "is %d; at least %d", c.MaxUserStagedBytes, 1<<20)
	p.check(c.MaxUserFlightBytes >= 1<<20 && c.MaxUserFlightBytes <= 1<<40, "max_user_flight_bytes", "is %d; between %d and %d", c.MaxUserFlightBytes, 1<<20, int64(1)<<40)
	p.check(c.MaxNewSlices >= 1, "max_new_slices", "is %d; at least 1", c.MaxNewSlices)
	p.check(c.QueueLimit >= 16, "queue_limit", "is %d; at least 16", c.QueueLimit)
	p.check(c.Workers >= 1, "workers", "is %d; at least 1", c.Workers)
	p.check(c.MaxConnections >= 16, "max_connections", "is %d; at least 16", c.MaxConnections)
	p.check(c.MaxAddressConnections >= 1, "max_address_connections", "is %d; at least 1", c.MaxAddressConnections)
	p.check(c.MaxUserConnections >= 1, "max_user_connections", "is %d; at least 1", c.MaxUserConnections)
	p.check(c.MaxUserRequests >= 1, "max_user_requests", "is %d; at least 1", c.MaxUserRequests)
	p.check(oneOf(c.LogLevel, "debug", "info", "warn", "error"), "log_level", "is %q; debug, info, warn or error", c.LogLevel)
	p.check(oneOf(c.LogFormat, "text", "json"), "log_format", "is %q; text or json", c.LogFormat)
	p.check(c.Metrics == "" || isEndpoint(c.Metrics), "metrics", "%q is no IP:port, such as 127.0.0.1:7480", c.Metrics)
	p.check(c.Traces == "" || telemetry.IsCollector(c.Traces), "traces", "%q is no URL of a collector, such as http://127.0.0.1:4318", c.Traces)
	p.check(c.API == "" || isEndpoint(c.API), "api", "%q is no IP:port, such as 127.0.0.1:7490", c.API)
	p.check(c.API == "" || c.API != c.Metrics, "api", "is the address of metrics too: give each its own")
	for _, proxy := range c.APIProxies {
		_, err := ParseNetwork(proxy)
		p.check(err == nil, "api_proxies", "%q is no IP address and no network, such as 192.0.2.0/28", proxy)
	}
	p.check(c.ConsoleURL == "" || isWebAddress(c.ConsoleURL), "console_url", "%q is no address such as https://console.example", c.ConsoleURL)
	p.check(c.OIDCIssuer == "" || isWebAddress(c.OIDCIssuer), "oidc_issuer", "%q is no address such as https://id.example", c.OIDCIssuer)
	p.check(c.OIDCIssuer == "" || c.ConsoleURL != "" && c.OIDCClient != "" && c.OIDCSecretFile != "", "oidc_issuer",
		"needs console_url, oidc_client and oidc_secret_file too")
	p.check(c.Pprof == "" || filepath.IsAbs(c.Pprof), "pprof",
		"%q is no socket's path: at an address every user of this machine could read the node's keys", c.Pprof)
	p.check(c.Experiments == "" || filepath.IsAbs(c.Experiments), "experiments", "%q is no absolute path", c.Experiments)
	if len(p) == 0 {
		return nil
	}
	return fault.E(fault.Invalid, op, "configuration", strings.Join(p, "; "))
}

// ParseNetwork reads an IP address, or a network as address/bits.
func ParseNetwork(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	n, err := netip.ParsePrefix(text)
	return n.Masked(), err
}

func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

func validSite(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return false
		}
	}
	return len(name) <= 63
}

// validate reports the problems of the sizes.
func (s *Sizes) validate(p *problems) {
	p.check(s.CapacityBytes >= 0, "capacity_bytes", "is negative")
	p.check(s.ReserveBytes >= 0, "reserve_bytes", "is negative")
	p.check(s.MemoryBytes >= 64<<20, "memory_bytes", "is %d; at least %d", s.MemoryBytes, 64<<20)
	p.check(s.NeighbourCacheBytes >= 0, "neighbour_cache_bytes", "is negative")
	p.check(s.SideLogBytes > 0, "side_log_bytes", "is not above 0")
	p.check(s.MissedBytes >= 4096, "missed_bytes", "is %d; at least 4096", s.MissedBytes)
	p.check(s.TransferPageBytes >= 1 && s.TransferPageBytes <= 4<<20, "transfer_page_bytes", "is %d; between 1 and %d", s.TransferPageBytes, 4<<20)
	p.check(s.CheckpointBytes >= 4096, "checkpoint_bytes", "is %d; at least 4096", s.CheckpointBytes)
}

type problems []string

func (p *problems) check(ok bool, key, format string, args ...any) {
	if !ok {
		*p = append(*p, key+" "+fmt.Sprintf(format, args...))
	}
}

func oneOf(s string, words ...string) bool {
	for _, w := range words {
		if s == w {
			return true
		}
	}
	return false
}

// isEndpoint reports whether a text is an IP address and a port.
func isEndpoint(text string) bool {
	_, err := netip.ParseAddrPort(text)
	return err == nil
}
