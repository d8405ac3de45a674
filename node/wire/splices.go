package wire

import (
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// splices bounds what this host passes on for others.
type splices struct {
	mu     sync.Mutex // guards below
	limits Limits
	open   int
	byPeer map[string]int
	tokens float64 // new ones that may begin now
	filled time.Time
}

func (s *splices) init(l Limits) {
	s.limits, s.byPeer, s.tokens = l, map[string]int{}, float64(l.Splices)
}

// enter counts a splice that begins; leave must follow unless it fails.
func (s *splices) enter(peer string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.filled.IsZero() {
		s.tokens = min(s.tokens+now.Sub(s.filled).Seconds()*float64(s.limits.SpliceRate), float64(s.limits.Splices))
	}
	s.filled = now
	if s.open >= s.limits.Splices || s.byPeer[peer] >= s.limits.PeerSplices || s.tokens < 1 {
		return fault.E(fault.Overloaded, opSplice, peer, "this host passes on as much as it may")
	}
	s.tokens--
	s.open++
	s.byPeer[peer]++
	return nil
}

func (s *splices) leave(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.byPeer[peer]--; s.byPeer[peer] == 0 {
		delete(s.byPeer, peer)
	}
}

// spliceBurst is how far ahead of its share a splice may be, each way.
const spliceBurst = 250 * time.Millisecond

// pace holds one way of a splice to its share.
type pace struct{ free time.Duration }

// take counts n bytes that were passed on at now, at a rate in bytes a second,
// and returns how long to wait for the next.
func (p *pace) take(now time.Duration, n, rate int) time.Duration {
	p.free = max(p.free, now) + time.Duration(float64(n)/float64(rate)*float64(time.Second))
	return max(p.free-now-spliceBurst, 0)
}

// share is the rate of each way of a splice, in bytes a second.
func (s *splices) share() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.limits.SpliceBytes/(2*max(s.open, 1)), 1)
}

// rest waits; false when the host is closed.
func (h *Host) rest(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-h.ctx.Done():
		return false
	}
}

// Splices returns how many byte streams this host passes on for others now.
func (h *Host) Splices() int {
	h.splices.mu.Lock()
	defer h.splices.mu.Unlock()
	return h.splices.open
}
