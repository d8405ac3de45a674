package wire

import (
	"cmp"
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
}

// Status returns all connections, sorted by peer, class and age.
func (h *Host) Status() []Status {
	links := h.snapshot()
	out := make([]Status, 0, len(links))
	for _, l := range links {
		s := Status{Peer: l.peer.id, Class: l.class, Address: l.capable.RemoteMultiaddr().String(), Outbound: l.outbound, Relayed: l.relayed, Via: l.via, RTT: time.Duration(l.rtt.Load()),
			Current: l.peer.current[l.class].Load() == l, Since: l.born, Frames: l.traffic.Load()}
		s.Queued = l.queue.Size()
		l.mu.Lock()
		s.Calls, s.Requests = len(l.pending), len(l.serving)
		l.mu.Unlock()
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Class, b.Class), a.Since.Compare(b.Since))
	})
	return out
}
