package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// network carries bytes between hosts. Bytes of one connection keep their
// order; what is sent across a cut arrives when the cut is healed, as TCP
// would send it again, unless an end gives up before.
type network struct {
	mu     sync.Mutex // guards below, and all connections
	seed   uint64
	hosts  []*host
	ways   map[way]*state
	live   map[*conn]bool
	made   map[way]uint64 // connections so far
	resets int            // connections that broke in the middle
	// note hears of what is sent; nil: nothing does.
	note func(c *conn, bytes int)
}

// way is one direction between two hosts.
type way struct{ from, to *host }

// state is how a way is now.
type state struct {
	cut    int // so many faults cut it
	delay  time.Duration
	jitter time.Duration
	extra  time.Duration // by a fault
	loss   float64       // share of writes that arrive late by a resend
}

// host is one machine on the network.
type host struct {
	net       *network
	name, ip  string
	client    bool // a mount is there, and no node
	index     uint64
	life      *life // of the process there now; nil: none
	listeners map[string]*listener
}

// life is the network as one process on a host has it.
type life struct{ *host }

func newNetwork(seed uint64) *network {
	return &network{seed: seed, ways: map[way]*state{}, live: map[*conn]bool{}, made: map[way]uint64{}}
}

// host adds a machine.
func (n *network) host(name string) *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &host{net: n, name: name, index: uint64(len(n.hosts)), ip: fmt.Sprintf("10.0.%d.%d", len(n.hosts)/250, len(n.hosts)%250+1), listeners: map[string]*listener{}}
	r := rand.New(rand.NewPCG(n.seed, uint64(len(n.hosts))+1000))
	for _, other := range n.hosts {
		delay := time.Duration(200_000 + r.IntN(20_000_000))
		for _, w := range []way{{h, other}, {other, h}} {
			n.ways[w] = &state{delay: delay, jitter: time.Duration(1000 + r.IntN(2_000_000))}
		}
	}
	n.hosts = append(n.hosts, h)
	return h
}

// clientHost adds a machine with a mount and no node.
func (n *network) clientHost(name string) *host {
	h := n.host(name)
	h.client = true
	return h
}

// change changes ways and lets what waits on them go on.
func (n *network) change(ways []way, f func(*state)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range ways {
		if s := n.ways[w]; s != nil {
			f(s)
		}
	}
	for _, c := range n.ordered() {
		c.resumeLocked()
	}
}

// breakSoon has connections of a host break behind some more bytes, which may
// be in the middle of a frame.
func (n *network) breakSoon(h *host, chance *rand.Rand) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.ordered() {
		if (c.local == h || c.remote == h) && chance.IntN(3) == 0 {
			c.left = 1 + chance.IntN(4000)
		}
	}
}

// ordered lists the connections as they were made.
func (n *network) ordered() []*conn {
	out := make([]*conn, 0, len(n.live))
	for c := range n.live {
		out = append(out, c)
	}
	sortBy(out, func(c *conn) uint64 { return c.number })
	return out
}

// begin starts a process on the host.
func (h *host) begin() *life {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.life = &life{h}
	return h.life
}

// end ends the process on the host, and its connections. Where the machine itself is gone, peers
// hear nothing; where only the process is, they are told.
func (h *host) end(silent bool) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	h.life = nil
	for _, l := range h.listeners {
		l.closeLocked()
	}
	h.listeners = map[string]*listener{}
	for _, c := range n.ordered() {
		if c.local != h {
			continue
		}
		c.closeLocked(!silent)
	}
}

// address is where the host listens.
func (h *host) address() string { return "/ip4/" + h.ip + "/tcp/7400" }

// Listen implements wire.Network.
func (h *life) Listen(address ma.Multiaddr) (manet.Listener, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{host: h.host, address: address, more: make(chan *conn, backlog), over: make(chan struct{})}
	if h.host.life != h || h.listeners[address.String()] != nil {
		return nil, syscall.EADDRINUSE
	}
	h.listeners[address.String()] = l
	return l, nil
}

// Dial implements wire.Network.
func (h *life) Dial(ctx context.Context, address ma.Multiaddr) (manet.Conn, error) {
	n := h.net
	n.mu.Lock()
	to, _ := n.find(address.String())
	if to == nil {
		n.mu.Unlock()
		return nil, syscall.EHOSTUNREACH
	}
	number := n.numberLocked(h.host, to)
	chance := rand.New(rand.NewPCG(n.seed, number))
	n.mu.Unlock()
	for {
		n.mu.Lock()
		_, l := n.find(address.String())
		if h.host.life != h {
			n.mu.Unlock()
			return nil, syscall.EHOSTUNREACH
		}
		there, back := n.ways[way{h.host, to}], n.ways[way{to, h.host}]
		wait, open := there.delay+back.delay+there.extra+back.extra, there.cut == 0 && back.cut == 0 && to.life != nil
		n.mu.Unlock()
		if !open {
			wait = 200 * time.Millisecond
		}
		wait += time.Duration(chance.IntN(1_000_000))
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
		if !open {
			continue
		}
		if l == nil {
			return nil, syscall.ECONNREFUSED // the machine is there, the process is not yet
		}
		if c := n.connect(h, to, address.String(), number); c != nil {
			return c, nil
		}
	}
}

func (n *network) find(address string) (*host, *listener) {
	for _, h := range n.hosts {
		if h.address() == address {
			return h, h.listeners[address]
		}
	}
	return nil, nil
}

// connect makes both ends; nil: not now.
func (n *network) connect(from *life, to *host, address string, number uint64) *conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := to.listeners[address]
	if l == nil || from.host.life != from {
		return nil
	}
	a, b := n.endLocked(from.host, to, number), n.endLocked(to, from.host, number|1<<63)
	a.peer, b.peer = b, a
	select {
	case l.more <- b:
		return a
	default:
		a.closeLocked(false)
		b.closeLocked(false)
		return nil
	}
}

// numberLocked names a connection. Numbers do not depend on the order in which
// different hosts dial. n.mu is held.
func (n *network) numberLocked(from, to *host) uint64 {
	w := way{from, to}
	n.made[w]++
	return from.index<<48 | to.index<<32 | n.made[w]
}

// endLocked makes one end of a connection. n.mu is held.
func (n *network) endLocked(local, remote *host, number uint64) *conn {
	c := &conn{net: n, local: local, remote: remote, number: number, chance: rand.New(rand.NewPCG(n.seed, number)),
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1)}
	n.live[c] = true
	return c
}

// backlog bounds the connections that wait to be accepted; a host with more lets
// dialling ones try again.
const backlog = 256

// listener accepts connections.
type listener struct {
	host    *host
	address ma.Multiaddr
	more    chan *conn
	over    chan struct{}
	closed  bool
}

// Accept implements manet.Listener.
func (l *listener) Accept() (manet.Conn, error) {
	select {
	case <-l.over:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.more:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// closeLocked lets nothing more be accepted. The network's mutex is held.
func (l *listener) closeLocked() {
	if !l.closed {
		l.closed = true
		close(l.over)
	}
}

// Close implements manet.Listener.
func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.host.listeners[l.address.String()] == l {
		delete(l.host.listeners, l.address.String())
	}
	l.closeLocked()
	return nil
}

// Multiaddr implements manet.Listener.
func (l *listener) Multiaddr() ma.Multiaddr { return l.address }

// Addr implements manet.Listener.
func (l *listener) Addr() net.Addr { return l.host.addr() }

func (h *host) addr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(h.ip), Port: 7400} }
