package wire

import (
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/node/wire/unixsock"
)

// strangers holds the accepted connections whose peers are not admitted yet: their
// handshake is under way, or they have not said hello. A newcomer beyond a limit
// takes the place of a random one of the others. So silent connections shut no peer
// out, and in a flood each has some time to become known.
type strangers struct {
	limits Limits
	pace   rate.Limiter // of new connections from one address
	turns  turns        // of their handshakes

	mu     sync.Mutex // guards below
	chance *rand.Rand
	open   []*stranger
	others int // of open, those that are not listed
	listed map[netip.Addr]bool
}

// stranger is the place of one connection.
type stranger struct {
	pool   *strangers
	from   string // address or user
	listed bool
	conn   io.Closer
	left   bool // guarded by the pool's mutex
}

var errCrowded = errors.New("too many connections of strangers")

func newStrangers(l Limits) *strangers {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails
	pace := rate.Limit{RPS: float64(l.AddressRate), Burst: l.PerAddress}
	return &strangers{limits: l, chance: rand.New(rand.NewChaCha8(seed)), pace: rate.Limiter{SubnetRateLimiter: rate.SubnetLimiter{
		IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: pace}},
		IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 64, Limit: pace}},
		GracePeriod:      time.Minute,
	}}}
}

// list sets the addresses of the peers that this host knows. They count apart:
// neither the limit of all strangers nor the pace of new connections holds for
// them.
func (s *strangers) list(addresses []ma.Multiaddr) {
	listed := map[netip.Addr]bool{}
	for _, a := range addresses {
		if ip, ok := addressOf(a); ok {
			listed[ip] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = listed
}

func addressOf(a ma.Multiaddr) (netip.Addr, bool) {
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}, false
	}
	out, ok := netip.AddrFromSlice(ip)
	return out.Unmap(), ok
}

// enterTCP gives a connection a place. An IPv6 network counts as one address:
// one host has all of it.
func (s *strangers) enterTCP(c manet.Conn) (*stranger, error) {
	ip, ok := addressOf(c.RemoteMultiaddr())
	if !ok {
		return s.enter("?", false, c), nil
	}
	s.mu.Lock()
	listed := s.listed[ip]
	s.mu.Unlock()
	if !listed && !s.pace.Allow(ip) {
		return nil, errCrowded
	}
	bits := ip.BitLen()
	if ip.Is6() && !listed {
		bits = 64
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return nil, err
	}
	return s.enter(network.String(), listed, c), nil
}

// enterLocal gives a connection over a Unix socket a place; the host's own user
// is listed.
func (s *strangers) enterLocal(user uint32, c io.Closer) *stranger {
	return s.enter(fmt.Sprintf("user %d", user), user == unixsock.User(), c)
}

func (s *strangers) enter(from string, listed bool, c io.Closer) *stranger {
	s.mu.Lock()
	defer s.mu.Unlock()
	if same := func(o *stranger) bool { return o.from == from }; s.count(same) >= s.limits.PerStranger {
		s.evictLocked(same)
	} else if !listed && s.others >= s.limits.Handshakes {
		s.evictLocked(func(o *stranger) bool { return !o.listed })
	}
	one := &stranger{pool: s, from: from, listed: listed, conn: c}
	s.open = append(s.open, one)
	if !listed {
		s.others++
	}
	return one
}

func (s *strangers) count(of func(*stranger) bool) (n int) {
	for _, o := range s.open {
		if of(o) {
			n++
		}
	}
	return n
}

// evictLocked closes a random connection for which of holds. The mutex is held.
func (s *strangers) evictLocked(of func(*stranger) bool) {
	left := s.chance.IntN(s.count(of))
	for _, o := range s.open {
		if !of(o) {
			continue
		}
		if left == 0 {
			s.removeLocked(o)
			_ = o.conn.Close() // a socket's close does not wait; its handshake ends with it
			return
		}
		left--
	}
}

// removeLocked takes a place away. The mutex is held.
func (s *strangers) removeLocked(o *stranger) {
	if o.left {
		return
	}
	o.left = true
	s.open = slices.DeleteFunc(s.open, func(p *stranger) bool { return p == o })
	if !o.listed {
		s.others--
	}
}

// leave frees the place, because the peer is admitted or the connection is gone. It
// may be called twice, and on nil.
func (o *stranger) leave() {
	if o == nil {
		return
	}
	o.pool.mu.Lock()
	defer o.pool.mu.Unlock()
	o.pool.removeLocked(o)
}

// gone reports whether the place is free, or another stranger has it.
func (o *stranger) gone() bool {
	o.pool.mu.Lock()
	defer o.pool.mu.Unlock()
	return o.left
}

// turns bounds how many handshakes of strangers compute at once: as many as half
// of the processors can. So a crowd leaves the other half to all other work, above
// all to the goroutines that accept connections: their queue is in the kernel,
// which cannot tell strangers from other peers. A handshake that waits for its peer
// gives its turn up meanwhile. Nil: no bound.
type turns chan struct{}

func newTurns() turns { return make(turns, max(1, runtime.GOMAXPROCS(0)/2)) }
