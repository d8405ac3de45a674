package server

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/lock"
	"cartwheel.dev/node/wire"
)

// Config is everything that a node's operator decides. DefaultConfig fills
// what has a default; Validate reports every problem with its key.
type Config struct {
	// Version is the version of the configuration's form: 1.
	Version int `koanf:"version"`
	// Data is the directory of this node's disk, one per node.
	Data string `koanf:"data"`
	// Site is the name of the site that the node stands at.
	Site string `koanf:"site"`
	// Listen lists the multiaddresses to listen on.
	Listen []string `koanf:"listen"`
	// Advertise lists the addresses that others are told; empty: the ones listened on.
	Advertise []string `koanf:"advertise"`
	// Socket is the path of a Unix socket for processes on this machine, in a
	// directory that only the node's user may write. Given here, every user of
	// the machine may connect to it, as to Listen. Empty: wire.sock below Data,
	// for the node's user; "none": none.
	Socket string `koanf:"socket"`
	// GeoConfig lists the addresses of the geo-config server, each with its peer ID.
	GeoConfig []string `koanf:"geo_config"`
	// ExpectedNodes is how many nodes must have registered before the first
	// of them makes the root slice of a new cluster.
	ExpectedNodes int `koanf:"expected_nodes"`

	// Lease is how long an answered beacon binds a standby.
	Lease time.Duration `koanf:"lease"`
	// Session is how long a client's cache outlives its last keep-alive.
	Session time.Duration `koanf:"session"`
	// Shared is for how long after two clients met in a directory neither gets
	// it to work in alone.
	Shared time.Duration `koanf:"shared"`
	// RegistrationLife is how long a client's registration in a slice lasts
	// after its last operation there; an operation that may have been run
	// before is refused from then on.
	RegistrationLife time.Duration `koanf:"registration_life"`
	// FailedAfter is how long a member may be failed before another node
	// takes its place.
	FailedAfter time.Duration `koanf:"failed_after"`

	// SiteSpread is how far apart nodes of one site may be before the site audit
	// says that it is not one place.
	SiteSpread time.Duration `koanf:"site_spread"`

	// CapacityBytes bounds what the node stores; 0: what the disk has.
	CapacityBytes int64 `koanf:"capacity_bytes"`
	// ReserveBytes of the disk stay free: below them clients get "no space".
	ReserveBytes int64 `koanf:"reserve_bytes"`
	// MemoryBytes is the target of the garbage collector; caches are sized by it.
	MemoryBytes int64 `koanf:"memory_bytes"`
	// MissedBytes bounds the operations kept in memory for members that miss
	// them; one that missed more gets the slice's state instead.
	MissedBytes int `koanf:"missed_bytes"`
	// TransferPageBytes is about how many bytes of rows one call brings to a
	// member that gets a slice's state; the log is applied between two calls.
	TransferPageBytes int `koanf:"transfer_page_bytes"`
	// CheckpointBytes is the length of journal from which a checkpoint trims
	// it; it bounds what a start replays and holds in memory.
	CheckpointBytes int64 `koanf:"checkpoint_bytes"`
	// MaxSliceObjects closes a slice to creation.
	MaxSliceObjects uint64 `koanf:"max_slice_objects"`
	// MaxSessions bounds the clients at once; more are told "overloaded".
	MaxSessions int `koanf:"max_sessions"`
	// MaxLeases bounds the table of object leases; beyond it none is granted.
	MaxLeases int `koanf:"max_leases"`
	// MaxLocks bounds the locks of files that are held here, and MaxWaitingLocks the
	// requests that wait for one, of which one client may have a quarter; beyond
	// them programs are told "no locks available".
	MaxLocks        int `koanf:"max_locks"`
	MaxWaitingLocks int `koanf:"max_waiting_locks"`
	// MaxUserSessions and MaxUserLeases bound those of one user, so that others
	// find room: more sessions are told "overloaded", and no more leases granted.
	MaxUserSessions int `koanf:"max_user_sessions"`
	MaxUserLeases   int `koanf:"max_user_leases"`
	// MaxUserHolds bounds the files that one user's clients have open and that have
	// no name, or none yet; beyond it they are told "overloaded" when they make
	// one more. A file that is open when its name is removed is held always.
	MaxUserHolds int `koanf:"max_user_holds"`
	// MaxUserStagedBytes bounds the chunks that one user's clients stored here and
	// that no file names yet; beyond it they are told "overloaded" until some are
	// committed. A chunk counts 16 KiB at least, for up to two hours. A mount
	// stores up to its dirty bytes (64 MiB) before it commits: leave as much for
	// each mount of a user, or they may wait for each other until the time is over.
	MaxUserStagedBytes int64 `koanf:"max_user_staged_bytes"`
	// MaxUserFlightBytes bounds the bytes of one user's requests under way here;
	// one more is told "overloaded".
	MaxUserFlightBytes int64 `koanf:"max_user_flight_bytes"`
	// MaxNewSlices bounds the slices that this node makes for one user within an
	// hour; beyond it the user's new objects go to slices that are there.
	MaxNewSlices int `koanf:"max_new_slices"`
	// QueueLimit bounds the clients' operations under way at once, over all
	// slices; beyond it they are told "overloaded" and ask again. Their bytes
	// are bounded by a quarter of MemoryBytes.
	QueueLimit int `koanf:"queue_limit"`
	// Workers is how many requests that may block are handled at once in each
	// class of connections; others wait for one of these. Nodes have as many of
	// their own.
	Workers int `koanf:"workers"`
	// MaxConnections bounds the connections to this node; further ones are refused.
	MaxConnections int `koanf:"max_connections"`
	// MaxAddressConnections bounds those from one address; further ones are refused.
	// Many clients may sit behind one gateway.
	MaxAddressConnections int `koanf:"max_address_connections"`
	// MaxUserConnections bounds those of one user: further ones are cut.
	MaxUserConnections int `koanf:"max_user_connections"`
	// MaxUserRequests bounds the requests of one user that are under way here:
	// further ones are told "overloaded" and ask again.
	MaxUserRequests int `koanf:"max_user_requests"`

	// Pprof is the path of a Unix socket for the profiler, which this user alone may
	// open: it shows the process's memory, keys included. Empty: none.
	Pprof string `koanf:"pprof"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `koanf:"log_level"`
	// LogFormat is text or json.
	LogFormat string `koanf:"log_format"`
}

// ConfigVersion is the newest form of the configuration that this code reads.
const ConfigVersion = 1

// DefaultConfig returns the configuration before the operator's words.
func DefaultConfig() Config {
	return Config{
		Version:            ConfigVersion,
		Listen:             []string{"/ip4/0.0.0.0/tcp/7400"},
		ExpectedNodes:      1,
		Lease:              3 * time.Second,
		Session:            3 * time.Second,
		Shared:             5 * time.Second,
		FailedAfter:        30 * time.Minute,
		SiteSpread:         10 * time.Millisecond,
		ReserveBytes:       256 << 20,
		MemoryBytes:        220 << 20,
		RegistrationLife:   24 * time.Hour,
		MissedBytes:        32 << 20,
		TransferPageBytes:  1 << 20,
		CheckpointBytes:    48 << 20,
		MaxSliceObjects:    1_000_000,
		MaxSessions:        10_000,
		MaxLeases:          200_000,
		MaxLocks:           100_000,
		MaxWaitingLocks:    65_536,
		MaxUserSessions:    5_000,
		MaxUserLeases:      150_000,
		MaxUserHolds:       150_000,
		MaxNewSlices:       256,
		MaxUserStagedBytes: 8 << 30,
		MaxUserFlightBytes: 128 << 20,

		QueueLimit:            2048,
		Workers:               256,
		MaxConnections:        16384,
		MaxAddressConnections: 4096,
		MaxUserConnections:    4096,
		MaxUserRequests:       16384,

		LogLevel:  "info",
		LogFormat: "text",
	}
}

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
	p.check(c.Socket == "" || c.Socket == noSocket || filepath.IsAbs(c.Socket), "socket", "%q is neither an absolute path nor %q", c.Socket, noSocket)
	for _, a := range c.GeoConfig {
		p.check(strings.Contains(a, "/p2p/"), "geo_config", "%q lacks the server's identity: end it with /p2p/ID", a)
	}
	p.check(c.ExpectedNodes >= 1, "expected_nodes", "is %d; at least 1", c.ExpectedNodes)
	p.check(c.Lease >= 100*time.Millisecond && c.Lease <= time.Minute, "lease", "is %v; between 100ms and 1m", c.Lease)
	p.check(c.Session >= 100*time.Millisecond && c.Session <= time.Minute, "session", "is %v; between 100ms and 1m", c.Session)
	p.check(c.FailedAfter >= time.Second, "failed_after", "is %v; at least 1s", c.FailedAfter)
	p.check(c.SiteSpread >= 2*time.Millisecond && c.SiteSpread <= time.Minute, "site_spread", "is %v; between 2ms and 1m", c.SiteSpread)
	p.check(c.CapacityBytes >= 0, "capacity_bytes", "is negative")
	p.check(c.ReserveBytes >= 0, "reserve_bytes", "is negative")
	p.check(c.MemoryBytes >= 64<<20, "memory_bytes", "is %d; at least %d", c.MemoryBytes, 64<<20)
	p.check(c.RegistrationLife >= time.Second, "registration_life", "is %v; at least 1s", c.RegistrationLife)
	p.check(c.MissedBytes >= 4096, "missed_bytes", "is %d; at least 4096", c.MissedBytes)
	p.check(c.TransferPageBytes >= 1 && c.TransferPageBytes <= 4<<20, "transfer_page_bytes", "is %d; between 1 and %d", c.TransferPageBytes, 4<<20)
	p.check(c.CheckpointBytes >= 4096, "checkpoint_bytes", "is %d; at least 4096", c.CheckpointBytes)
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
	p.check(c.Pprof == "" || filepath.IsAbs(c.Pprof), "pprof",
		"%q is no socket's path: at an address every user of this machine could read the node's keys", c.Pprof)
	if len(p) == 0 {
		return nil
	}
	return fault.E(fault.Invalid, op, "configuration", strings.Join(p, "; "))
}

// limits are those of the connections.
func (c Config) limits() wire.Limits {
	l := wire.DefaultLimits()
	l.Workers, l.Connections, l.PerAddress = c.Workers, c.MaxConnections, c.MaxAddressConnections
	l.Account = wire.AccountLimits{Connections: c.MaxUserConnections, Calls: c.MaxUserRequests, Held: int(c.MaxUserFlightBytes)}
	return l
}

// locks are the limits of the table of locks.
func (c Config) locks() lock.Config {
	l := lock.DefaultConfig()
	l.MaxLocks, l.MaxWaiting, l.MaxOwnWaiting = c.MaxLocks, c.MaxWaitingLocks, c.MaxWaitingLocks/4
	return l
}

func validSite(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return false
		}
	}
	return len(name) <= 63
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

// holdsGeoConfig reports whether a peer is the geo-config server.
func (c *Config) holdsGeoConfig(peer string) bool {
	return slices.ContainsFunc(c.GeoConfig, func(a string) bool { return strings.HasSuffix(a, "/p2p/"+peer) })
}
