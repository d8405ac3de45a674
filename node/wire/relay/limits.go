package relay

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"cartwheel.dev/geo-config/fault"
)

// Limits bound what a host relays for others.
type Limits struct {
	Open    int // relayed connections at once
	PerPeer int // of these, for one peer
	Rate    int // new ones a second, after a first burst of Open
	Bytes   int // bytes a second in all, of which each connection has an equal share each way
}

// usage counts the connections that a host relays against its limits.
type usage struct {
	limits Limits

	mu     sync.Mutex // guards below
	open   int
	byPeer map[string]int
	begins *rate.Limiter // of new connections
}

func newUsage(l Limits) *usage {
	return &usage{limits: l, byPeer: map[string]int{}, begins: rate.NewLimiter(rate.Limit(l.Rate), l.Open)}
}

// acquire counts a connection that begins now. Without an error, release must
// follow.
func (u *usage) acquire(peer string, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open >= u.limits.Open || u.byPeer[peer] >= u.limits.PerPeer || !u.begins.AllowN(now, 1) {
		return fault.E(fault.Overloaded, op, peer, "this host passes on as much as it may")
	}
	u.open++
	u.byPeer[peer]++
	return nil
}

func (u *usage) release(peer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open--
	if u.byPeer[peer]--; u.byPeer[peer] == 0 {
		delete(u.byPeer, peer)
	}
}

// share is the rate of each way of a connection, in bytes a second.
func (u *usage) share() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return max(u.limits.Bytes/(2*max(u.open, 1)), 1)
}

// burst is how far ahead of its share one way of a connection may be.
const burst = 250 * time.Millisecond

// pace holds one way of a connection to its share. It is no token bucket: one
// read may be larger than all that a small share allows in advance.
type pace struct{ free time.Duration }

// take counts n bytes that were forwarded at now, at a rate in bytes a second. It
// returns how long to wait for the next.
func (p *pace) take(now time.Duration, n, rate int) time.Duration {
	p.free = max(p.free, now) + time.Duration(float64(n)/float64(rate)*float64(time.Second))
	return max(p.free-now-burst, 0)
}
