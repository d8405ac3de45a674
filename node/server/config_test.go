package server

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/lock"
)

// TestConfig_LimitsReachTheWire sets every limit of connections, and refuses
// those that let no client in.
func TestConfig_LimitsReachTheWire(t *testing.T) {
	c := DefaultConfig()
	c.Data, c.Site = "/data", "a"
	c.Workers, c.MaxConnections, c.MaxUserConnections, c.MaxUserRequests, c.MaxUserFlightBytes = 3, 17, 5, 7, 13<<20
	c.MaxAddressConnections = 11
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	l := c.limits()
	if l.Workers != 3 || l.Connections != 17 || l.PerAddress != 11 || l.Account.Connections != 5 || l.Account.Calls != 7 || l.Account.Held != 13<<20 || l.Backlog == 0 {
		t.Errorf("the wire gets %+v", l)
	}
	c.Workers, c.MaxConnections, c.MaxUserConnections, c.MaxUserRequests, c.MaxUserFlightBytes = 0, 0, 0, 0, 1<<10
	c.MaxAddressConnections = 0
	err := c.Validate()
	for _, key := range []string{"workers", "max_connections", "max_address_connections", "max_user_connections", "max_user_requests", "max_user_flight_bytes"} {
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), key+" is ") {
			t.Errorf("got %v, want %s in it", err, key)
		}
	}
}

// TestConfig_LimitsReachTheLocks sets the limits of locks, and refuses those
// that leave no room for one client's share.
func TestConfig_LimitsReachTheLocks(t *testing.T) {
	c := DefaultConfig()
	c.Data, c.Site = "/data", "a"
	if l := c.locks(); l != lock.DefaultConfig() {
		t.Errorf("the defaults are %+v, want %+v", l, lock.DefaultConfig())
	}
	c.MaxLocks, c.MaxWaitingLocks = 3, 40
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if l := c.locks(); l.MaxLocks != 3 || l.MaxWaiting != 40 || l.MaxOwnWaiting != 10 || l.MaxLost == 0 {
		t.Errorf("the table gets %+v", l)
	}
	c.MaxLocks, c.MaxWaitingLocks = 0, 3
	err := c.Validate()
	for _, key := range []string{"max_locks", "max_waiting_locks"} {
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), key+" is ") {
			t.Errorf("got %v, want %s in it", err, key)
		}
	}
}

// TestConfig_ChecksForHowLongDeletedContentStays takes both ends of what is allowed, and
// refuses what is beyond them.
func TestConfig_ChecksForHowLongDeletedContentStays(t *testing.T) {
	c := DefaultConfig()
	c.Data, c.Site = "/data", "a"
	c.Retention, c.UploadGrace = 0, time.Second
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for key, spoil := range map[string]func(*Config){
		"retention is -1s": func(c *Config) { c.Retention = -time.Second }, "retention is 8": func(c *Config) { c.Retention = maxRetention + time.Hour },
		"retention_least is -1s": func(c *Config) { c.RetentionLeast = -time.Second }, "retention_least is 25h0m0s": func(c *Config) { c.RetentionLeast = 25 * time.Hour },
		"scrub_period is -1s": func(c *Config) { c.ScrubPeriod = -time.Second }, "scrub_period is 59s": func(c *Config) { c.ScrubPeriod = 59 * time.Second },
		"upload_grace is 0s": func(c *Config) { c.UploadGrace = 0 }, "upload_grace is 999ms": func(c *Config) { c.UploadGrace = 999 * time.Millisecond },
	} {
		bad := c
		spoil(&bad)
		if err := bad.Validate(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("got %v, want %q in it", err, key)
		}
	}
}

func TestConfig_ChecksTheConsole(t *testing.T) {
	c := DefaultConfig()
	c.Data, c.Site = "/data", "a"
	c.APIProxies = []string{"192.0.2.0/28", "2001:db8::1"}
	c.ConsoleURL, c.OIDCIssuer, c.OIDCClient, c.OIDCSecretFile = "https://console.example", "https://id.example/realm", "console", "/secret"
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for key, spoil := range map[string]func(*Config){
		"api_proxies ": func(c *Config) { c.APIProxies = []string{"gateway.example"} },
		"console_url ": func(c *Config) { c.ConsoleURL = "console.example" },
		"oidc_issuer ": func(c *Config) { c.OIDCSecretFile = "" },
	} {
		bad := c
		spoil(&bad)
		if err := bad.Validate(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("got %v, want %s in it", err, key)
		}
	}
}
