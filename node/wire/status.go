package wire

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Status describes one connection, for people and for tests.
type Status struct {
	Peer     string
	Class    Class
	Address  string // the peer's end, as a multiaddress
	Outbound bool   // this host dialled it
	Relayed  bool   // a relay passes the bytes on
	Via      string // which one, where this host dialled
	RTT      time.Duration
	Current  bool // new frames take it
	Since    time.Time
	Queued   int // bytes waiting to be sent
	Calls    int // of this host, waiting for an answer
	Requests int // of the peer, under way here
	Frames   uint64
	Sent     uint64 // bytes since it was made; of a Unix socket 0
}

// Status returns all connections, sorted by peer, class and age.
func (h *Host) Status() []Status {
	links := h.snapshot()
	out := make([]Status, 0, len(links))
	for _, l := range links {
		s := Status{Peer: l.peer.id, Class: l.class, Address: l.capable.RemoteMultiaddr().String(), Outbound: l.outbound, Relayed: l.relayed, Via: l.via, RTT: l.sampler.smoothed(),
			Current: l.peer.current[l.class].Load() == l, Since: l.born, Frames: l.traffic.Load(), Sent: l.conn.raw.went.Load()}
		s.Queued = l.queue.Size()
		l.mu.Lock()
		s.Calls, s.Requests = len(l.calls.pending), len(l.serving.requests)
		l.mu.Unlock()
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Class, b.Class), a.Since.Compare(b.Since))
	})
	return out
}

// Path is how frames travel to a peer.
type Path struct {
	Local bool          // over a Unix socket of this machine
	Via   string        // the host that passes them on; "?" where the peer chose it
	RTT   time.Duration // smoothed; 0: not measured yet
}

// Path returns how frames travel to a peer now, by its connection for beacons
// or else for operations; false: there is none.
func (h *Host) Path(id string) (Path, bool) {
	for _, class := range [...]Class{Beacon, Operation} {
		if l := h.currentLink(id, class); l != nil {
			p := Path{Local: l.isLocal(), Via: l.via, RTT: l.sampler.smoothed()}
			if l.relayed && p.Via == "" {
				p.Via = "?"
			}
			return p, true
		}
	}
	return Path{}, false
}

// Ping measures one round trip to a peer, however frames travel there. Errors
// are those of Call.
func (h *Host) Ping(ctx context.Context, id string) (time.Duration, error) {
	if _, err := h.link(ctx, id, Beacon); err != nil { // dialling is no part of it
		return 0, err
	}
	began := h.now()
	body, err := h.Call(ctx, id, Beacon, methodPing, nil, nil, nil)
	body.Release()
	return time.Duration(h.now() - began), err
}

// Probe measures the round trip to a peer: it opens a TCP connection to one of the
// peer's addresses and closes it at once.
func (h *Host) Probe(ctx context.Context, id string) (time.Duration, error) {
	c, took, err := h.dialPlain(ctx, id)
	if err != nil {
		return 0, unreachable(id, err)
	}
	c.Close()
	return took, nil
}

// MaxPayload returns how many bytes one frame of a class may carry as its body.
func (h *Host) MaxPayload(class Class) int { return int(h.options.Limits.Class[class].Body) }

// Queued returns how many bytes wait to be sent to a peer in a class.
func (h *Host) Queued(peer string, class Class) int {
	l := h.currentLink(peer, class)
	if l == nil {
		return 0
	}
	return l.queue.Size()
}

// Strangers returns how many accepted connections are not admitted yet.
func (h *Host) Strangers() int {
	s := h.transport.strangers
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Relayed returns how many connections this host relays for others now.
func (h *Host) Relayed() int { return h.relays.server.Open() }
