package wire

import (
	"context"
	"io/fs"
	"log/slog"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
	"cartwheel.dev/node/wire/unixsock"
)

// PrivateSocket and SharedSocket are the modes that a Unix socket may have. Only
// processes of this host's user reach a private one. A shared one is open to
// every user of the machine, as a TCP port on loopback is: the handshake proves
// the identity of the peer, and the gater decides about it.
const (
	PrivateSocket = unixsock.Private
	SharedSocket  = unixsock.Shared
)

// MaxSocketPath is how many bytes the path of a Unix socket may have on this
// system. 0 means that the system has none.
const MaxSocketPath = unixsock.MaxPath

// ClassLimits bound the frames of one class.
type ClassLimits struct {
	Header uint32 // bytes of a message; a longer frame is refused before it is read, and the connection closed
	Body   uint32 // bytes of a body or payload, likewise
	// Queue bounds the bytes waiting to be sent on a connection: calls wait for
	// room, Send answers Overloaded, and the peer's further requests are
	// answered Overloaded. Answers are always taken; at four times as many
	// bytes the connection is cut.
	Queue int
	Held  int // bytes of requests from one peer under way here: further ones are answered Overloaded
	Calls int // requests from one connection under way here: further ones are answered Overloaded
}

// frame returns the limits of one frame.
func (c *ClassLimits) frame() framing.Limits { return framing.Limits{Header: c.Header, Body: c.Body} }

// Limits bound what peers can make this host hold.
type Limits struct {
	Class [classes]ClassLimits
	// Workers is how many Spawn handlers of a class run at once; peers that
	// Options.Inner names have as many of their own.
	Workers int
	Backlog int // requests waiting for a worker: further ones are answered Overloaded
	// Waiting is how many Spawn handlers of a class may wait at once (Yield):
	// further ones are answered Overloaded. 0: 4096.
	Waiting     int
	Connections int // all of them
	PerPeer     int // connections of one peer
	PerAddress  int // connections from one source address; many clients may sit behind one gateway
	AddressRate int // new connections a second from one address, after a first burst of PerAddress
	// Handshakes is how many accepted connections may have their handshake under
	// way or their peer not admitted yet: one more takes the place of another.
	// Addresses and users of peers that this host knows are not counted.
	Handshakes  int
	PerStranger int // of these, from one address or one user of this machine: likewise; 0: 32
	Dials       int // of this host, whose handshake is under way: further ones fail; 0: 512
	// StrangerBytes is what a peer may send until it is admitted; then the
	// connection is cut. 0: 64 KiB.
	StrangerBytes int
	Account       AccountLimits
	Relayed       int // connections that this host relays for others; 0: 64
	PeerRelayed   int // of these, for one peer; 0: 8
	RelayRate     int // new ones a second, after a first burst of Relayed; 0: 16
	// RelayBytes is how many bytes a second this host relays for others in all.
	// Each connection has an equal share each way, beyond which it waits: one of
	// beacons does not wait for one of chunks. 0: 32 MiB.
	RelayBytes int
}

// AccountLimits bound all connections of one account together (Options.Admit),
// so that one user leaves room for the others. 0: the default.
type AccountLimits struct {
	Connections int // further ones are cut; 4096
	Calls       int // requests under way here: further ones are answered Overloaded; 16384
	Workers     int // of these, for handlers that may block, running or waiting for a worker: likewise; 1024
	Held        int // bytes of these: likewise; 128 MiB
	// Queued is how many bytes of answers may wait to be taken: until they are,
	// further requests are answered Overloaded; at twice as many the connection
	// that adds to them is cut. 64 MiB.
	Queued int
}

// DefaultLimits are for a node.
func DefaultLimits() Limits {
	const kib, mib = 1 << 10, 1 << 20
	return Limits{
		Class: [classes]ClassLimits{
			Beacon:    {Header: 256 * kib, Body: 256 * kib, Queue: 1 * mib, Held: 4 * mib, Calls: 1024},
			Operation: {Header: 4 * mib, Body: 8 * mib, Queue: 32 * mib, Held: 64 * mib, Calls: 8192},
			Chunk:     {Header: 1 * mib, Body: 8 * mib, Queue: 64 * mib, Held: 128 * mib, Calls: 1024},
		},
		Workers: 256, Backlog: 4096,
		Connections: 16384, PerPeer: 24, PerAddress: 4096, AddressRate: 100, Handshakes: 256,
	}
}

// Times are the periods after which things happen without being asked.
type Times struct {
	Dial      time.Duration // one attempt at one address
	Redial    time.Duration // after a failed dial, calls fail at once for this long; it never grows
	Probe     time.Duration // between attempts to reach a peer that KeepConnected names
	Heartbeat time.Duration // a connection on which nothing was sent for this long sends a heartbeat
	Silence   time.Duration // a connection on which nothing was heard for this long is cut
	// Handshake is how long an accepted handshake may take; 0: as long as Dial.
	// Hello is how long after it the peer may take to be admitted; 0: 3 s. Then
	// the connection is cut.
	Handshake, Hello time.Duration
	// Frame is how long the rest of a frame may take to come, once it began, and
	// a second more for each 8 KiB of it; then the connection is cut. 0: 10 s.
	Frame time.Duration
	// Suspect is how long nothing was heard on a connection until another path
	// is looked for; 0: one and a half Heartbeats. Relay is how long a dial may
	// take until one through a relay starts beside it; 0: a third of Dial.
	Suspect, Relay time.Duration
}

// DefaultTimes suit a wide area.
func DefaultTimes() Times {
	return Times{Dial: 3 * time.Second, Redial: 200 * time.Millisecond, Probe: time.Second,
		Heartbeat: time.Second, Silence: 5 * time.Second}
}

// Options configure a Host. Only Key is needed.
type Options struct {
	Key    Key
	Listen []string // multiaddresses such as /ip4/0.0.0.0/tcp/4001 and /unix/PATH; none for a client
	// SocketMode is that of the Unix sockets in Listen: PrivateSocket, which is
	// the default, or SharedSocket.
	SocketMode fs.FileMode
	// Gater admits or refuses an authenticated peer, inbound and outbound,
	// before any frame is read. It must not block. Nil admits all.
	Gater func(peer string) error
	// Admit says for whom an authenticated peer acts: its account, whose
	// connections share Limits.Account, or "" where no such limits hold. False:
	// the peer is a stranger. It may call Hello, whose handler makes it known to
	// Admit, within Times.Hello and Limits.StrangerBytes; other calls are answered
	// Unauthorized, and what else it sends is thrown away, both unread. It must not
	// block. The host does not ask about peers that it dialled. Nil admits all.
	Admit func(peer string) (account string, ok bool)
	Hello Method
	// Inner names the peers whose requests have workers of their own, so that they
	// never queue behind those of all other peers. It must not block. Nil names
	// none.
	Inner  func(peer string) bool
	Noise  bool // offer Noise beside TLS, and prefer it when dialling
	Limits Limits
	Times  Times
	Logger *slog.Logger

	// HLC stamps outgoing frames; OnHLC sees the stamps of others. Both run on
	// hot paths and must not block.
	HLC   func() uint64
	OnHLC func(peer string, hlc uint64)
	// OnAnswer sees each answer to a request: how long it took from the request's
	// arrival, and the fault's kind, None where there is none. It must not block.
	OnAnswer func(m Method, took time.Duration, kind fault.Kind)
	// Tracer follows operations over processes. Nil: nothing is followed.
	Tracer Tracer
	// OnSample sees a round trip time, less the time that the peer says it
	// spent, and the peer's coordinate if it sent one. It must not block.
	OnSample func(peer string, rtt time.Duration, coordinate *Coordinate)
	// ReadsWide reports whether a peer's program is known to read coordinates of
	// more than two dimensions, which end the connections of older programs. A
	// peer that sent one needs no such word. It must not block. Nil knows of none.
	ReadsWide func(peer string) bool
	// Relays returns the peers over which id may be reached while the direct
	// way is broken, the best first. It may block until ctx ends. Nil: none.
	Relays func(ctx context.Context, id string) []string
	// MayRelay allows or refuses a peer to reach another one through this host. It
	// must not block. Nil refuses all.
	MayRelay func(from, to string) error
	// OnConnect sees a peer's connections come and go. It must not block.
	OnConnect func(peer string, class Class, up bool)
	// Network is nil but in a simulation of a network.
	Network Network
}

// withDefaults sets the limits that may be left out.
func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		limit   *int
		unless0 int
	}{{&l.Waiting, 4096}, {&l.Relayed, 64}, {&l.PeerRelayed, 8}, {&l.RelayRate, 16}, {&l.RelayBytes, 32 << 20},
		{&l.PerStranger, 32}, {&l.Dials, 512}, {&l.StrangerBytes, 64 << 10},
		{&l.Account.Connections, 4096}, {&l.Account.Calls, 16384}, {&l.Account.Workers, 1024}, {&l.Account.Held, 128 << 20}, {&l.Account.Queued, 64 << 20}} {
		if *d.limit == 0 {
			*d.limit = d.unless0
		}
	}
	return l
}

// withDefaults sets the times that may be left out.
func (t Times) withDefaults() Times {
	for _, d := range []struct {
		time    *time.Duration
		unless0 time.Duration
	}{{&t.Suspect, 3 * t.Heartbeat / 2}, {&t.Relay, t.Dial / 3}, {&t.Handshake, t.Dial}, {&t.Hello, 3 * time.Second}, {&t.Frame, 10 * time.Second}} {
		if *d.time == 0 {
			*d.time = d.unless0
		}
	}
	return t
}

const opNew fault.Op = "wire.New"

// withDefaults sets what may be left out.
func (o Options) withDefaults() Options {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Times == (Times{}) {
		o.Times = DefaultTimes()
	}
	o.Times, o.Limits = o.Times.withDefaults(), o.Limits.withDefaults()
	if o.SocketMode == 0 {
		o.SocketMode = PrivateSocket
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// check says what is wrong with options that are complete.
func (o *Options) check() error {
	if o.Key.private == nil {
		return fault.E(fault.Invalid, opNew, "key", "a host needs a key")
	}
	if o.SocketMode != PrivateSocket && o.SocketMode != SharedSocket {
		return fault.E(fault.Invalid, opNew, "", unixsock.BadMode)
	}
	for c, l := range o.Limits.Class {
		if l.Header == 0 || l.Body == 0 || l.Queue < int(l.Body) || l.Held <= 0 || l.Calls <= 0 {
			return fault.E(fault.Invalid, opNew, Class(c).String(), "every limit of a class must be set, and a queue must have room for a body")
		}
	}
	t := o.Times
	if t.Dial <= 0 || t.Probe <= 0 || t.Suspect <= 0 || t.Relay <= 0 || t.Heartbeat <= 0 || t.Silence <= t.Heartbeat {
		return fault.E(fault.Invalid, opNew, "times", "all must be positive, and silence longer than heartbeat")
	}
	if o.Limits.Workers <= 0 || o.Limits.Backlog <= 0 {
		return fault.E(fault.Invalid, opNew, "workers", "workers and backlog must be positive")
	}
	return nil
}

// Network makes the connections of one host in a simulation, instead of TCP.
// Its connections are neither encrypted nor authenticated: each end believes
// the key that the other names. No configuration sets one, only a program
// that simulates the network. It is used by many goroutines.
type Network interface {
	Dial(ctx context.Context, address ma.Multiaddr) (manet.Conn, error)
	Listen(address ma.Multiaddr) (manet.Listener, error)
}

// network returns what makes this host's connections.
func (o *Options) network() Network {
	if o.Network != nil {
		return o.Network
	}
	return tcp{}
}

// tcp is the system's network.
type tcp struct{}

func (tcp) Dial(ctx context.Context, address ma.Multiaddr) (manet.Conn, error) {
	var d manet.Dialer
	return d.DialContext(ctx, address)
}

func (tcp) Listen(address ma.Multiaddr) (manet.Listener, error) { return manet.Listen(address) }
