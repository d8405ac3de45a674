package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/relay"
)

// relays is the part of a host that goes through relays and is one: it finds
// another path to a peer, and gives the direct one back as soon as it works.
type relays struct {
	host   *Host
	server *relay.Server
}

var _ relay.Host = relays{}

// Dial implements relay.Host.
func (r relays) Dial(ctx context.Context, peer string) (net.Conn, error) {
	c, _, err := r.host.dialPlain(ctx, peer)
	return c, err
}

// Allow implements relay.Host.
func (r relays) Allow(from, to string) error {
	if r.host.options.MayRelay == nil {
		return fault.E(fault.NotSupported, opRelay, r.host.id, "this host passes nothing on")
	}
	return r.host.options.MayRelay(from, to)
}

// Drops implements relay.Host. What the gater refuses by now gets no bytes either.
func (r relays) Drops(peer string) bool {
	if filter := r.host.filter.Load(); filter != nil && (*filter)(peer, Chunk, MethodRelay).Drop {
		return true
	}
	return r.host.admit(peer) != nil
}

const opRelay fault.Op = "wire.relay"

var errNoRelay = errors.New("no relay reaches it")

// serve relays for the peer at the end of c, until that ends.
func (r relays) serve(c libp2p.CapableConn, near *directConn) {
	defer c.Close()
	r.server.Serve(r.host.ctx, c.RemotePeer().String(), near)
}

// reach answers whether this host has a direct connection to a peer, and its
// round trip.
func (r relays) reach(q *Request) {
	var to wrapperspb.StringValue
	if err := q.Decode(&to); err != nil {
		q.Fail(err)
		return
	}
	if err := r.Allow(q.Peer, to.Value); err != nil {
		q.Fail(err)
		return
	}
	l := r.healthyLink(to.Value)
	if l == nil {
		q.Fail(fault.E(fault.Unreachable, opRelay, to.Value, "no direct connection"))
		return
	}
	q.Reply(wrapperspb.Int64(int64(l.sampler.smoothed())))
}

// connect makes a connection to a peer, by the direct path or through a relay.
// The direct path has a head start with patient, unless a class of the peer is
// relayed already. Connect returns when no attempt is left running.
func (r relays) connect(p *peerState, class Class, addresses []ma.Multiaddr, patient bool) (libp2p.CapableConn, error) {
	h := r.host
	byDirect := func(ctx context.Context) (libp2p.CapableConn, error) {
		return h.connectAny(ctx, p, direct(class), addresses)
	}
	if h.options.Relays == nil {
		return byDirect(h.ctx)
	}
	head := time.Duration(0)
	if patient && !p.isRelayed() {
		head = h.options.Times.Relay
	}
	return relay.Connect(h.ctx, relay.Paths{Direct: byDirect, Head: head, Pause: max(h.options.Times.Redial, stagger),
		Relayed: func(ctx context.Context) (libp2p.CapableConn, error) { return r.connectRelayed(ctx, p, class) }})
}

// isRelayed reports whether any class of a peer goes through a relay now.
func (p *peerState) isRelayed() bool {
	for class := range p.current {
		if l := p.current[class].Load(); l != nil && l.relayed {
			return true
		}
	}
	return false
}

// connectRelayed connects to a peer through the relay with the shortest round
// trip in all.
func (r relays) connectRelayed(ctx context.Context, p *peerState, class Class) (libp2p.CapableConn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*r.host.options.Times.Dial)
	defer cancel()
	ask := func(ctx context.Context, id string) (time.Duration, error) { return r.askReach(ctx, id, p.id) }
	var errs []error
	for _, id := range relay.Choose(ctx, r.host.options.Relays(ctx, p.id), [2]string{p.id, r.host.id}, ask) {
		c, err := r.connectThrough(ctx, id, p, class)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil, errNoRelay
	}
	return nil, errors.Join(errs...)
}

// askReach asks a relay for its round trip to a peer, and adds the one to the
// relay itself.
func (r relays) askReach(ctx context.Context, id, peer string) (time.Duration, error) {
	h := r.host
	ctx, cancel := context.WithTimeout(ctx, h.options.Times.Dial)
	defer cancel()
	l, err := r.directLink(ctx, id)
	if err != nil {
		return 0, err
	}
	var onward wrapperspb.Int64Value
	began := h.now()
	body, err := l.call(ctx, methodReach, wrapperspb.String(peer), nil, &onward, nil)
	body.Release()
	if err != nil {
		return 0, err
	}
	ours := l.sampler.smoothed()
	if ours == 0 {
		ours = time.Duration(h.now() - began)
	}
	return ours + time.Duration(max(onward.Value, 0)), nil
}

// directLink returns a connection to a relay that goes through no other relay,
// for small frames. It makes one if there is none.
func (r relays) directLink(ctx context.Context, id string) (*link, error) {
	if l := r.healthyLink(id); l != nil {
		return l, nil
	}
	h := r.host
	p, addresses := h.addressesOf(id)
	if len(addresses) == 0 {
		return nil, unreachable(id, errNoAddress)
	}
	c, err := h.connectAny(ctx, p, direct(Operation), addresses)
	if err != nil {
		return nil, err
	}
	if l := h.adopt(c, true); l != nil {
		return l, nil
	}
	return nil, fault.E(fault.Closed, opCall, h.id, "this host was closed")
}

// healthyLink returns a direct connection on which this host heard the peer
// lately.
func (r relays) healthyLink(id string) *link {
	h := r.host
	for _, class := range [...]Class{Beacon, Operation} {
		l := h.currentLink(id, class)
		if l != nil && !l.relayed && !l.dead.Load() && time.Duration(h.now()-l.heardAt.Load()) < h.options.Times.Suspect {
			return l
		}
	}
	return nil
}

// connectThrough connects to a peer through one relay. Identity and encryption
// are those of any connection, from end to end.
func (r relays) connectThrough(ctx context.Context, id string, p *peerState, class Class) (libp2p.CapableConn, error) {
	h := r.host
	to, addresses := h.addressesOf(id)
	if len(addresses) == 0 {
		return nil, unreachable(id, errNoAddress)
	}
	outer, err := h.connectAny(ctx, to, laneRelay, addresses)
	if err != nil {
		return nil, err
	}
	var d *directConn
	if !outer.As(&d) {
		return nil, errors.Join(errNoRelay, outer.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = outer.Close() }) // a read or write that waits for it fails
	defer stop()
	if err := relay.Ask(d, p.id, h.options.Times.Dial); err != nil {
		if errors.Is(err, io.EOF) {
			err = errRefused
		}
		return nil, errors.Join(err, outer.Close())
	}
	over := &relay.Conn{Conn: d, Outer: outer, Relay: id}
	scope, err := h.transport.limits.OpenConnection(network.DirOutbound, false, over.RemoteMultiaddr())
	if err != nil {
		return nil, errors.Join(err, outer.Close())
	}
	if err := scope.SetPeer(p.peer); err != nil {
		scope.Done()
		return nil, errors.Join(err, outer.Close())
	}
	c, err := h.transport.dial[relayed(class)].Upgrade(ctx, h.transport, newRaw(over), network.DirOutbound, p.peer, scope)
	if err != nil {
		return nil, errors.Join(err, outer.Close())
	}
	return c, nil
}

// suspect looks for another path to a peer that has fallen silent, before the
// silence is long enough to cut the connection.
func (r relays) suspect(l *link) {
	h := r.host
	if h.options.Relays == nil || l.relayed || l.isLocal() {
		return
	}
	r.lookAround(l.peer, l.class, func(addresses []ma.Multiaddr) {
		asked := h.now()
		c, err := r.connect(l.peer, l.class, addresses, false)
		if err != nil {
			return
		}
		if l.heardAt.Load() > asked {
			_ = c.Close() // the peer was only slow
			return
		}
		if h.adopt(c, true) != nil {
			l.fail(fault.E(fault.Unreachable, opLink, l.peer.id, "nothing heard from the peer; another path is in use"))
		}
	})
}

// restoreDirect tries the direct path to every peer that goes through a relay, at
// every probe and without growing pauses.
func (r relays) restoreDirect() {
	type path struct {
		p     *peerState
		class Class
	}
	var through []path
	h := r.host
	h.mu.RLock()
	for _, p := range h.peers {
		for class := range p.current {
			if l := p.current[class].Load(); l != nil && l.relayed {
				through = append(through, path{p, Class(class)})
			}
		}
	}
	h.mu.RUnlock()
	for _, d := range through {
		r.lookAround(d.p, d.class, func(addresses []ma.Multiaddr) {
			if c, err := h.connectAny(h.ctx, d.p, direct(d.class), addresses); err == nil {
				h.adopt(c, true)
			}
		})
	}
}

// lookAround runs look, which looks for another path, unless one runs already or
// did a moment ago.
func (r relays) lookAround(p *peerState, class Class, look func([]ma.Multiaddr)) {
	h := r.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.looking[class] || time.Since(p.looked[class]) < h.options.Times.Probe || len(p.addresses) == 0 {
		return
	}
	addresses := p.addresses
	p.looking[class] = h.spawnLocked(func() {
		look(addresses)
		h.mu.Lock()
		defer h.mu.Unlock()
		p.looking[class], p.looked[class] = false, time.Now()
		h.forgetLocked(p)
	})
}
