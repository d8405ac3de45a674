package wire

import (
	"context"
	"math"
	"sync"
	"time"

	"cartwheel.dev/node/wire/framing"
)

const (
	// stampEvery is the least time between two stamps on a connection, so that
	// busy ones are not measured with every frame.
	stampEvery = 100 * time.Millisecond
	// maxHeld is how long a stamp is worth echoing, well within what 32 bits of
	// microseconds tell apart.
	maxHeld = 5 * time.Minute
	// maxSample is the longest round trip that stamps may show.
	maxSample = time.Minute
	// smoothing is the share of a new sample in a connection's round trip.
	smoothing = 8
)

// stamps measure round trips where nobody answers: frames of both ends carry
// the sender's clock and echo the other's newest, with the time it was held,
// as TCP's timestamps do.
type stamps struct {
	mu    sync.Mutex // guards below; nothing else is locked within
	sent  int64      // host clock, ns: when the last stamp was sent
	heard uint32     // the peer's newest stamp that was not echoed yet; 0: none
	at    int64      // host clock, ns: when it came
}

// stampOf is a clock's reading as frames carry it: microseconds, never 0.
func stampOf(now int64) uint32 { return max(uint32(now/int64(time.Microsecond)), 1) }

// stampTime fills in a frame's stamps and reports whether it echoes one: then
// it should carry the coordinate.
func (l *link) stampTime(f *framing.Frame) (echoes bool) {
	now := l.host.now()
	s := &l.stamps
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == 0 || now-s.sent >= int64(stampEvery) {
		s.sent = now
		f.ID = uint64(stampOf(now))
	}
	if s.heard == 0 {
		return false
	}
	held := now - s.at
	if echoes = held < int64(maxHeld); echoes {
		f.ID |= uint64(s.heard) << 32
		f.Time = framing.Micros(time.Duration(held))
	}
	s.heard = 0
	return echoes
}

// echoed takes a frame's stamps in.
func (l *link) echoed(f *framing.Frame) {
	now := l.host.now()
	if theirs := uint32(f.ID); theirs != 0 {
		s := &l.stamps
		s.mu.Lock()
		s.heard, s.at = theirs, now
		s.mu.Unlock()
	}
	if ours := uint32(f.ID >> 32); ours != 0 {
		round := time.Duration(stampOf(now)-ours) * time.Microsecond // wraps as the stamps do
		if held := time.Duration(f.Time) * time.Microsecond; round < maxSample && held <= round {
			l.measured(max(round-held, time.Microsecond), f)
		}
	}
}

// measured takes a round trip in and passes it on, with the coordinate that
// came with it. A relayed round trip says nothing of the distance.
func (l *link) measured(rtt time.Duration, f *framing.Frame) {
	if rtt <= 0 {
		return
	}
	old := l.rtt.Load()
	if old == 0 {
		old = int64(rtt)
	}
	l.rtt.Store(max(old+(int64(rtt)-old)/smoothing, 1)) // of two at once one is lost
	on := l.host.options.OnSample
	if on == nil || l.relayed {
		return
	}
	var at *Coordinate
	if f.Flags&framing.HasCoordinate != 0 && finite(f.Coordinate) {
		at = &f.Coordinate
	}
	on(l.peer.id, rtt, at)
}

func finite(c Coordinate) bool {
	for _, v := range [...]float32{c.X, c.Y, c.Height, c.Error} {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
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
			p := Path{Local: l.local(), Via: l.via, RTT: time.Duration(l.rtt.Load())}
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
