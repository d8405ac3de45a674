package server

import (
	"slices"
	"strings"
	"time"

	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/lock"
	"cartwheel.dev/node/wire"
)

// Config is everything that a node's operator decides. DefaultConfig fills
// what has a default; Validate reports every problem with its key. The comments
// of the fields are the text of docs/configuration.md. The keys of its groups
// stand beside its own ones.
type Config struct {
	// Version is the version of the configuration's form.
	Version int `yaml:"version"`
	// Data is the directory of the node's data, one for each node. It must be
	// given.
	Data string `yaml:"data"`
	// Site is the name of the site that the node stands at. It must be given.
	Site string `yaml:"site"`
	// Listen lists the multiaddresses to listen on.
	Listen []string `yaml:"listen"`
	// Advertise lists the addresses that the node tells others. Empty: those in
	// Listen.
	Advertise []string `yaml:"advertise"`
	// Socket is the path of a Unix socket for all users of this machine, in a
	// directory that only the node's user may write. Empty: sock/wire.sock below
	// Data, for the node's user alone. The word none: no socket.
	Socket string `yaml:"socket"`
	// GeoConfig lists the addresses of the geo-config server. Each ends in
	// /p2p/ID, with one ID.
	GeoConfig []string `yaml:"geo_config"`
	// ExpectedNodes is how many nodes must have registered before one of them
	// makes the root slice of a new cluster.
	ExpectedNodes int `yaml:"expected_nodes"`

	Timing `yaml:",inline"`
	Sizes  `yaml:",inline"`
	Limits `yaml:",inline"`

	// Pprof is the path of a Unix socket for the profiler, which only the node's
	// user may open: it shows the process's memory, keys included. Empty: none.
	Pprof string `yaml:"pprof"`
	// Metrics is the address, as IP:port, at which the node shows its figures to
	// Prometheus, over HTTP and to whoever asks. Empty: none.
	Metrics string `yaml:"metrics"`
	// Traces is the URL of a collector to which the node sends its part of
	// operations that are followed, by OpenTelemetry's protocol over HTTP. Empty:
	// none.
	Traces string `yaml:"traces"`
	// API is the address, as IP:port, at which the node serves its admin API over
	// HTTP. Choose one that only this machine reaches, and have the console's server
	// stand before it. Empty: none.
	API string `yaml:"api"`
	// APIHosts lists the names by which requests may call the node, besides
	// localhost and IP addresses. It refuses any other name.
	APIHosts []string `yaml:"api_hosts"`
	// APIKey is the file of an administrator's key, with which the admin API changes
	// sites, nodes, users and tokens, and signs people in: a node's own key may not.
	// Whoever takes the machine has that key then. Empty: those changes are refused
	// at this node, and people sign in at another one.
	APIKey string `yaml:"api_key"`
	// APIProxies lists the IP addresses, or networks such as 192.0.2.0/28, of the
	// console's servers on other machines. The node believes what they say of where
	// a request came from. Without it, everybody behind one of them counts as one
	// address when passwords are guessed.
	APIProxies []string `yaml:"api_proxies"`
	// ConsoleURL is the address at which people reach the console. The OIDC provider
	// sends them back to it.
	ConsoleURL string `yaml:"console_url"`
	// OIDCIssuer is the URL of an OpenID Connect provider by which people may sign in
	// to the console. Empty: none.
	OIDCIssuer string `yaml:"oidc_issuer"`
	// OIDCClient is the name under which the provider knows the console.
	OIDCClient string `yaml:"oidc_client"`
	// OIDCSecretFile is the file whose first line is the client's secret.
	OIDCSecretFile string `yaml:"oidc_secret_file"`
	// Experiments is the directory into which cartwheel-testbed writes its runs, as
	// an absolute path. The admin API shows them. It need not be there yet. Empty:
	// none.
	Experiments string `yaml:"experiments"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `yaml:"log_level"`
	// LogFormat is text or json.
	LogFormat string `yaml:"log_format"`
}

// Timing is how long the node waits and how long what it grants lasts.
type Timing struct {
	// Lease is how long an answered beacon binds a standby.
	Lease time.Duration `yaml:"lease"`
	// Session is how long a client's cache outlives its last keep-alive.
	Session time.Duration `yaml:"session"`
	// Shared is how long a directory stays shared after two clients met in it:
	// for that time no client gets it exclusively.
	Shared time.Duration `yaml:"shared"`
	// RegistrationLife is how long a client's registration in a slice lasts after
	// its last operation there. From then on the slice refuses operations that it
	// may have run before. Set the same value at all nodes.
	RegistrationLife time.Duration `yaml:"registration_life"`
	// FailedAfter is how long a member may be failed before another node takes
	// its place.
	FailedAfter time.Duration `yaml:"failed_after"`

	// Retention is for how long the node keeps what is deleted or overwritten, in the
	// slices that it leads, before the space is given back. 0: for as long as
	// UploadGrace and four leases alone. Set the same value at all nodes.
	Retention time.Duration `yaml:"retention"`
	// RetentionLeast is what stays of Retention while the disk of a node that has the
	// slice is short of space. Until there is room, the node gives up the oldest versions
	// first. The same as Retention: none is given up, and writes are refused instead. 0:
	// UploadGrace and four leases alone stay.
	RetentionLeast time.Duration `yaml:"retention_least"`
	// UploadGrace is for how long content stays that a client has uploaded, or was told
	// to be here already, and has not committed. A commit that comes later is refused,
	// and the client uploads the content again. No content goes for as long after the
	// node's start.
	UploadGrace time.Duration `yaml:"upload_grace"`

	// ScrubPeriod is within what time the node reads all chunks that it stores from its
	// disk, and repairs from other nodes those that are damaged or missing. 0: only where an
	// administrator orders it (cartwheel scrub).
	ScrubPeriod time.Duration `yaml:"scrub_period"`

	// SiteSpread is how far apart, in round-trip time, the nodes of one site may
	// be before the site audit reports them.
	SiteSpread time.Duration `yaml:"site_spread"`
}

// Sizes are the bytes that the node takes of the disk, of memory and of one
// call.
type Sizes struct {
	// CapacityBytes bounds what the node stores. 0: what the disk has.
	CapacityBytes int64 `yaml:"capacity_bytes"`
	// ReserveBytes of the disk stay free. Below that, clients get "no space".
	ReserveBytes int64 `yaml:"reserve_bytes"`
	// MemoryBytes is the memory to aim for: it sizes the caches and is the target
	// of the garbage collector. A node with more to do takes more.
	MemoryBytes int64 `yaml:"memory_bytes"`
	// NeighbourCacheBytes bounds the chunks that the node keeps in memory, beside
	// MemoryBytes, for clients of its site that read slices of other nodes below the
	// cue .Hotspot. What was used least recently goes first. 0: it keeps none, and
	// such clients ask the slices' members.
	NeighbourCacheBytes int64 `yaml:"neighbour_cache_bytes"`
	// SideLogBytes bounds what the node keeps of writes below the cue
	// .EventualConsistency while the actives of their slices are away, in memory and on
	// its disk, content apart. Once it is full such writes fail with "no space".
	SideLogBytes int64 `yaml:"side_log_bytes"`
	// MissedBytes bounds the operations that the node keeps in memory for members
	// that miss them. A member that missed more gets the slice's state instead.
	MissedBytes int `yaml:"missed_bytes"`
	// TransferPageBytes is about how many bytes of rows one call brings to a
	// member that gets a slice's state. The member applies new operations between
	// two calls.
	TransferPageBytes int `yaml:"transfer_page_bytes"`
	// CheckpointBytes is the length of journal from which a checkpoint trims it.
	// It bounds what a start replays and holds in memory.
	CheckpointBytes int64 `yaml:"checkpoint_bytes"`
}

// Limits bound what the node accepts.
type Limits struct {
	// MaxSliceObjects is the number of objects from which a slice takes no new
	// ones.
	MaxSliceObjects uint64 `yaml:"max_slice_objects"`
	// MaxSessions bounds the clients at once. More are told "overloaded".
	MaxSessions int `yaml:"max_sessions"`
	// MaxLeases bounds the object leases at once. Beyond it the node grants none.
	MaxLeases int `yaml:"max_leases"`
	// MaxLocks bounds the locks of files that programs hold at once. Beyond it
	// they are told "no locks available".
	MaxLocks int `yaml:"max_locks"`
	// MaxWaitingLocks bounds the requests that wait for a lock, of which one
	// client may have a quarter. Beyond it programs are told "no locks available".
	MaxWaitingLocks int `yaml:"max_waiting_locks"`
	// MaxUserSessions bounds the sessions of one user, so that others find room.
	// More are told "overloaded".
	MaxUserSessions int `yaml:"max_user_sessions"`
	// MaxUserLeases bounds the object leases of one user, so that others find
	// room. Beyond it the node grants none.
	MaxUserLeases int `yaml:"max_user_leases"`
	// MaxUserHolds bounds the files that one user's clients have open and that
	// have no name, or none yet. One more is told "overloaded". A file that is
	// open when its name is removed stays.
	MaxUserHolds int `yaml:"max_user_holds"`
	// MaxUserStagedBytes bounds the chunks that one user's clients stored at the
	// node and that no file names yet. Beyond it they are told "overloaded" until
	// some are committed. A chunk counts at least 16 KiB, for up to two hours. A
	// mount stores up to its dirty bytes (64 MiB) before it commits. Leave as much
	// for each mount of a user, or they may wait for each other until their time
	// is over.
	MaxUserStagedBytes int64 `yaml:"max_user_staged_bytes"`
	// MaxUserFlightBytes bounds the bytes of one user's requests in flight. One
	// more is told "overloaded", and the client asks again.
	MaxUserFlightBytes int64 `yaml:"max_user_flight_bytes"`
	// MaxNewSlices bounds the slices that the node makes for one user within an
	// hour. Beyond it the user's new objects go to slices that exist already.
	MaxNewSlices int `yaml:"max_new_slices"`
	// QueueLimit bounds the clients' operations in flight, over all slices. More
	// are told "overloaded", and the clients ask again. A quarter of MemoryBytes
	// bounds their bytes.
	QueueLimit int `yaml:"queue_limit"`
	// Workers is how many requests that may block the node handles at once, in
	// each class of connections. Others wait. Requests of nodes have as many of
	// their own.
	Workers int `yaml:"workers"`
	// MaxConnections bounds the connections to the node. More are refused.
	MaxConnections int `yaml:"max_connections"`
	// MaxAddressConnections bounds the connections from one address, behind which
	// many clients may sit. More are refused.
	MaxAddressConnections int `yaml:"max_address_connections"`
	// MaxUserConnections bounds the connections of one user. More are cut.
	MaxUserConnections int `yaml:"max_user_connections"`
	// MaxUserRequests bounds the requests of one user in flight. More are told
	// "overloaded", and the client asks again.
	MaxUserRequests int `yaml:"max_user_requests"`
}

// ConfigVersion is the newest form of the configuration that this code reads.
const ConfigVersion = 1

// DefaultConfig returns the configuration before the operator's words.
func DefaultConfig() Config {
	return Config{
		Version:       ConfigVersion,
		Listen:        []string{"/ip4/0.0.0.0/tcp/7400"},
		ExpectedNodes: 1,
		Timing: Timing{
			Lease:            3 * time.Second,
			Session:          3 * time.Second,
			Shared:           5 * time.Second,
			RegistrationLife: 24 * time.Hour,
			FailedAfter:      30 * time.Minute,
			Retention:        24 * time.Hour,
			UploadGrace:      time.Hour,
			ScrubPeriod:      14 * 24 * time.Hour,
			SiteSpread:       10 * time.Millisecond,
		},
		Sizes: Sizes{
			ReserveBytes:        256 << 20,
			MemoryBytes:         220 << 20,
			NeighbourCacheBytes: 64 << 20, SideLogBytes: 64 << 20,
			MissedBytes:       32 << 20,
			TransferPageBytes: 1 << 20,
			CheckpointBytes:   48 << 20,
		},
		Limits: Limits{
			MaxSliceObjects:       1_000_000,
			MaxSessions:           10_000,
			MaxLeases:             200_000,
			MaxLocks:              100_000,
			MaxWaitingLocks:       65_536,
			MaxUserSessions:       5_000,
			MaxUserLeases:         150_000,
			MaxUserHolds:          150_000,
			MaxUserStagedBytes:    8 << 30,
			MaxUserFlightBytes:    128 << 20,
			MaxNewSlices:          256,
			QueueLimit:            2048,
			Workers:               256,
			MaxConnections:        16384,
			MaxAddressConnections: 4096,
			MaxUserConnections:    4096,
			MaxUserRequests:       16384,
		},
		LogLevel:  "info",
		LogFormat: "text",
	}
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

// holdsGeoConfig reports whether a peer is the geo-config server.
func (c *Config) holdsGeoConfig(peer string) bool {
	return slices.ContainsFunc(c.GeoConfig, func(a string) bool { return strings.HasSuffix(a, "/p2p/"+peer) })
}

// leases are the limits of sessions and of what they hold.
func (c *Config) leases() lease.Config {
	l := lease.DefaultConfig()
	l.Length, l.Shared = int64(c.Session), int64(c.Shared)
	l.MaxSessions, l.MaxLeases = c.MaxSessions, c.MaxLeases
	l.MaxUserSessions, l.MaxUserLeases = c.MaxUserSessions, c.MaxUserLeases
	return l
}
