package wire

import (
	"sync"
	"sync/atomic"
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
	// leastSample is what a round trip counts as that the clock could not tell from
	// none.
	leastSample = time.Microsecond
	// smoothing is the share of a new sample in a connection's round trip.
	smoothing = 8
)

// stamps measure round trips without calls, as TCP's timestamps do: frames of
// both ends carry the sender's clock and echo the peer's newest one, with the time
// that the sender held it.
type stamps struct {
	mu    sync.Mutex // guards below; nothing else is locked within
	sent  int64      // host clock, ns: when the last stamp was sent
	heard uint32     // the peer's newest stamp that was not echoed yet; 0: none
	at    int64      // host clock, ns: when it came
}

// stampOf is a clock's reading as frames carry it: microseconds, never 0.
func stampOf(now int64) uint32 { return max(uint32(now/int64(time.Microsecond)), 1) }

// sampler measures the round trips of one connection. It is safe for use by many
// goroutines.
type sampler struct {
	stamps stamps
	rtt    atomic.Int64 // ns, smoothed; 0: never measured
}

// fill sets the stamps of a frame that is sent now, and reports whether it echoes
// one: then it should carry the coordinate.
func (m *sampler) fill(now int64, f *framing.Frame) (echoes bool) {
	s := &m.stamps
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

// read takes in the stamps of a frame that came now. It returns the round trip
// that they show, or 0.
func (m *sampler) read(now int64, f *framing.Frame) time.Duration {
	if theirs := uint32(f.ID); theirs != 0 {
		s := &m.stamps
		s.mu.Lock()
		s.heard, s.at = theirs, now
		s.mu.Unlock()
	}
	if ours := uint32(f.ID >> 32); ours != 0 {
		round := time.Duration(stampOf(now)-ours) * time.Microsecond // wraps as the stamps do
		if held := time.Duration(f.Time) * time.Microsecond; round < maxSample && held <= round {
			return max(round-held, leastSample)
		}
	}
	return 0
}

// roundTrip is that of a call sent and answered at two readings of the host's
// clock, less what the callee spent, in microseconds. Negative: the callee says
// that it spent longer than the call took.
func roundTrip(sent, answered int64, spent uint32) time.Duration {
	rtt := time.Duration(answered-sent) - time.Duration(spent)*time.Microsecond
	if rtt == 0 {
		return leastSample
	}
	return rtt
}

// add takes a round trip in.
func (m *sampler) add(rtt time.Duration) {
	old := m.rtt.Load()
	if old == 0 {
		old = int64(rtt)
	}
	m.rtt.Store(max(old+(int64(rtt)-old)/smoothing, 1)) // of two at once one is lost
}

// smoothed returns the round trip, or 0 before the first one.
func (m *sampler) smoothed() time.Duration { return time.Duration(m.rtt.Load()) }
