package wire

import (
	"context"
	"errors"
	"io/fs"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	libp2p "github.com/libp2p/go-libp2p/core/transport"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"

	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/wire/unixsock"
)

// transport dials and accepts connections of every class, over TCP and Unix
// sockets. It goes through libp2p's upgraders: one that offers all classes for
// listening, and one of each class for dialling.
type transport struct {
	options     *Options
	admit       func(peer string) error
	identity    *unixsock.Identity
	local       bool // this system has Unix sockets that name the peer's user
	accept      libp2p.Upgrader
	dial        [lanes]libp2p.Upgrader
	localAccept libp2p.Upgrader // the same over Unix sockets
	localDial   [lanes]libp2p.Upgrader
	limits      network.ResourceManager
	strangers   *strangers
}

var _ libp2p.Transport = (*transport)(nil)

func newTransport(o *Options, admit func(peer string) error) (*transport, error) {
	limits, err := newResources(o.Limits)
	if err != nil {
		return nil, err
	}
	t := &transport{options: o, admit: admit, limits: limits, strangers: newStrangers(o.Limits)}
	place, err := unixsock.ReadPlace()
	if t.local = err == nil; err != nil {
		o.Logger.Debug("no local connections", logattr.Err(err))
	}
	t.identity = &unixsock.Identity{Key: o.Key.private, Self: o.Key.id, Place: place, Lanes: protocols[:laneRelay+1], Logger: o.Logger}
	if o.Network == nil { // nothing computes in a simulated one's handshakes
		t.strangers.turns = newTurns()
	}
	all := make([]upgrader.StreamMuxer, 0, lanes)
	for i, id := range protocols {
		one := upgrader.StreamMuxer{ID: id, Muxer: single{lane(i)}}
		all = append(all, one)
		if t.dial[i], t.localDial[i], err = t.newUpgraders([]upgrader.StreamMuxer{one}, lane(i)); err != nil {
			return nil, errors.Join(err, limits.Close())
		}
	}
	if t.accept, t.localAccept, err = t.newUpgraders(all, 0); err != nil {
		return nil, errors.Join(err, limits.Close())
	}
	return t, nil
}

// newUpgraders makes one for TCP and one for Unix sockets; the lane is of
// those that dial.
func (t *transport) newUpgraders(muxers []upgrader.StreamMuxer, l lane) (tcp, local libp2p.Upgrader, err error) {
	if tcp, err = t.newUpgrader(muxers, l); err != nil {
		return nil, nil, err
	}
	security := []sec.SecureTransport{tracked{unixsock.Security{Identity: t.identity, Lane: uint8(l)}}}
	local, err = upgrader.New(security, muxers, nil, t.limits, gater{t.admit}, upgrader.WithAcceptTimeout(t.options.Times.Handshake))
	return tcp, local, err
}

func (t *transport) newUpgrader(muxers []upgrader.StreamMuxer, l lane) (libp2p.Upgrader, error) {
	if t.options.Network != nil {
		security := []sec.SecureTransport{tracked{simulatedSecurity{t.options.Key, l}}}
		return upgrader.New(security, muxers, nil, t.limits, gater{t.admit}, upgrader.WithAcceptTimeout(t.options.Times.Handshake))
	}
	key := t.options.Key.private
	tls, err := libp2ptls.New(libp2ptls.ID, key, muxers)
	if err != nil {
		return nil, err
	}
	security := []sec.SecureTransport{tracked{tls}}
	if t.options.Noise {
		n, err := noise.New(noise.ID, key, muxers)
		if err != nil {
			return nil, err
		}
		security = []sec.SecureTransport{tracked{n}, tracked{tls}}
	}
	return upgrader.New(security, muxers, nil, t.limits, gater{t.admit}, upgrader.WithAcceptTimeout(t.options.Times.Handshake))
}

// newResources turns Limits into libp2p's resource manager, which counts
// connections; streams and memory are bounded by the frames' own limits.
func newResources(l Limits) (network.ResourceManager, error) {
	const unlimited = rcmgr.Unlimited
	connections := func(in, out, both int) rcmgr.ResourceLimits {
		return rcmgr.ResourceLimits{Streams: unlimited, StreamsInbound: unlimited, StreamsOutbound: unlimited, Conns: rcmgr.LimitVal(both),
			ConnsInbound: rcmgr.LimitVal(in), ConnsOutbound: rcmgr.LimitVal(out), FD: rcmgr.LimitVal(both), Memory: rcmgr.Unlimited64}
	}
	limits := rcmgr.PartialLimitConfig{
		System: connections(l.Connections, l.Connections, l.Connections),
		// Accepted connections have their places among the strangers.
		Transient:   connections(l.Connections, l.Dials, l.Connections+l.Dials),
		PeerDefault: connections(l.PerPeer, l.PerPeer, l.PerPeer),
	}.Build(rcmgr.InfiniteLimits)
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits), rcmgr.WithMetricsDisabled(),
		rcmgr.WithConnRateLimiters(&rate.Limiter{}), // the strangers have a pace, this host's own dials have none
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: l.PerAddress}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 64, ConnCount: l.PerAddress}}))
}

// connect dials one address for one lane.
func (t *transport) connect(ctx context.Context, address ma.Multiaddr, id peer.ID, l lane) (libp2p.CapableConn, error) {
	scope, err := t.limits.OpenConnection(network.DirOutbound, true, address)
	if err != nil {
		return nil, err
	}
	if err := scope.SetPeer(id); err != nil {
		scope.Done()
		return nil, err
	}
	if unixsock.IsAddress(address) {
		c, err := unixsock.Dial(ctx, address, t.options.Times.Dial)
		if err != nil {
			scope.Done()
			return nil, err
		}
		return t.localDial[l].Upgrade(ctx, t, newRaw(c), network.DirOutbound, id, scope)
	}
	c, err := t.network().Dial(ctx, address)
	if err != nil {
		scope.Done()
		return nil, err
	}
	return t.dial[l].Upgrade(ctx, t, newRaw(c), network.DirOutbound, id, scope)
}

// Dial is libp2p's; the host itself dials with connect, which knows the lane.
func (t *transport) Dial(ctx context.Context, address ma.Multiaddr, id peer.ID) (libp2p.CapableConn, error) {
	return t.connect(ctx, address, id, direct(Operation))
}

// CanDial reports whether address is TCP, or a Unix socket's where this system
// has local connections.
func (t *transport) CanDial(address ma.Multiaddr) bool {
	if unixsock.IsAddress(address) {
		return t.local
	}
	_, err := address.ValueForProtocol(ma.P_TCP)
	return err == nil
}

// Listen accepts connections of all classes on one address.
func (t *transport) Listen(address ma.Multiaddr) (libp2p.Listener, error) {
	return t.listen(address, t.options.SocketMode)
}

func (t *transport) listen(address ma.Multiaddr, mode fs.FileMode) (libp2p.Listener, error) {
	if unixsock.IsAddress(address) {
		l, err := unixsock.Listen(address, unixsock.Config{Mode: mode, PerUser: t.options.Limits.PerAddress,
			Dial: t.options.Times.Dial, Handshake: t.options.Times.Handshake, Logger: t.options.Logger})
		if err != nil {
			return nil, err
		}
		return t.localAccept.UpgradeGatedMaListener(t, t.localAccept.GateMaListener(localListener{l, t.strangers})), nil
	}
	l, err := t.network().Listen(address)
	if err != nil {
		return nil, err
	}
	return t.accept.UpgradeGatedMaListener(t, t.accept.GateMaListener(rawListener{l, t.strangers})), nil
}

func (t *transport) network() Network { return t.options.network() }

// Protocols names TCP and Unix sockets.
func (t *transport) Protocols() []int { return []int{ma.P_TCP, ma.P_UNIX} }

// Proxy is false.
func (t *transport) Proxy() bool { return false }

// gater asks Options.Gater once the peer is authenticated.
type gater struct{ admit func(peer string) error }

func (g gater) InterceptPeerDial(peer.ID) bool               { return true }
func (g gater) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }
func (g gater) InterceptAccept(network.ConnMultiaddrs) bool  { return true }
func (g gater) InterceptSecured(_ network.Direction, id peer.ID, _ network.ConnMultiaddrs) bool {
	return g.admit(id.String()) == nil
}
func (g gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
