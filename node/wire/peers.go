package wire

import (
	"errors"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/wire/unixsock"
)

// crossing is the most time between two connections that count as dialled by both
// ends at once.
const crossing = 3 * time.Second

// refused is how soon a connection that this host dialled must end, without a
// frame from the peer, to count as a failed dial. A peer whose gater refuses this
// host hangs up only after the handshake.
const refused = 2 * time.Second

var errRefused = errors.New("the peer hung up at once: it may not know this host's key")

// Refused reports whether err says that a peer that this host dialled hung up at
// once, as a peer does whose gater does not know this host's key.
func Refused(err error) bool { return errors.Is(err, errRefused) }

// wasRefused reports whether a connection that ends now ends as a refused one.
func (l *link) wasRefused() bool {
	return l.outbound && !l.welcome.Load() && time.Since(l.born) < refused
}

// maxPerClass bounds the live connections of one peer and class. The oldest go.
const maxPerClass = 4

const opPeer fault.Op = "wire.Host.AddPeer"

// AddPeer sets where a peer listens, in place of earlier addresses. The host
// prefers Unix sockets (/unix/PATH) of this machine. Those of other machines, and
// all on systems without Unix sockets, do no harm.
func (h *Host) AddPeer(id string, addresses []string) error {
	p, err := peer.Decode(id)
	if err != nil {
		return fault.Wrap(fault.Invalid, opPeer, id, err)
	}
	parsed := make([]ma.Multiaddr, 0, len(addresses))
	for _, text := range addresses {
		a, err := ma.NewMultiaddr(text)
		if err == nil && unixsock.IsAddress(a) && !h.transport.local {
			continue
		}
		if err != nil || !h.transport.CanDial(a) {
			return &fault.Error{Kind: fault.Invalid, Op: opPeer, Subject: id, Public: "neither a TCP address nor a Unix socket's: " + text, Cause: err}
		}
		parsed = append(parsed, a)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	state := h.stateLocked(p)
	if !slices.EqualFunc(state.addresses, parsed, ma.Multiaddr.Equal) {
		h.moveLocked(state, parsed)
		state.addresses = parsed
		state.failures = [classes]failure{}
		h.listLocked()
	}
	h.forgetLocked(state)
	return nil
}

// moveLocked tries new sockets of a peer that is connected over TCP. h.mu is
// held.
func (h *Host) moveLocked(p *peerState, addresses []ma.Multiaddr) {
	var news []ma.Multiaddr
	for _, a := range addresses {
		if unixsock.IsAddress(a) && !slices.ContainsFunc(p.addresses, a.Equal) {
			news = append(news, a)
		}
	}
	for class := range p.current {
		if l := p.current[class].Load(); l != nil && !l.isLocal() && len(news) > 0 {
			h.spawnLocked(func() { h.moveToLocal(p, Class(class), news) })
		}
	}
}

// listLocked passes the addresses of known peers to the limits of strangers. h.mu
// is held.
func (h *Host) listLocked() {
	var all []ma.Multiaddr
	for _, p := range h.peers {
		all = append(all, p.addresses...)
	}
	h.transport.strangers.list(all)
}

// Keep sets whether the host keeps the connections for beacons and operations to a
// peer up. It then tries once in Times.Probe. The addresses come from AddPeer.
func (h *Host) Keep(id string, keep bool) error {
	p, err := peer.Decode(id)
	if err != nil {
		return fault.Wrap(fault.Invalid, "wire.Host.Keep", id, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	state := h.stateLocked(p)
	state.keep = keep
	h.forgetLocked(state)
	return nil
}

// addressesOf returns what is known of a peer, and its addresses; nil if nothing.
func (h *Host) addressesOf(id string) (*peerState, []ma.Multiaddr) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	p := h.peers[id]
	if p == nil {
		return nil, nil
	}
	return p, p.addresses
}

// stateLocked returns the state of a peer, made where there is none. h.mu is held.
func (h *Host) stateLocked(p peer.ID) *peerState {
	id := p.String()
	state := h.peers[id]
	if state == nil {
		state = &peerState{id: id, peer: p}
		h.peers[id] = state
	}
	return state
}

// forgetLocked drops the state of a peer if it says nothing, so that clients that
// came and went leave nothing. h.mu is held.
func (h *Host) forgetLocked(p *peerState) {
	if p.keep || len(p.addresses) > 0 {
		return
	}
	for class := range p.links {
		if len(p.links[class]) > 0 || p.dials[class] != nil || p.looking[class] {
			return
		}
	}
	delete(h.peers, p.id)
}

// Connected reports whether there is a connection of that class.
func (h *Host) Connected(id string, class Class) bool {
	return h.currentLink(id, class) != nil
}

// Peers returns the peers with at least one connection, sorted.
func (h *Host) Peers() []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var out []string
	for id, p := range h.peers {
		for class := range p.links {
			if len(p.links[class]) > 0 {
				out = append(out, id)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// Forget undoes AddPeer and Keep and cuts all connections of a peer.
func (h *Host) Forget(id string) error {
	err := errors.Join(h.Keep(id, false), h.AddPeer(id, nil))
	h.Disconnect(id)
	return err
}

// Disconnect cuts all connections of a peer. The peer may come back unless the
// gater refuses it.
func (h *Host) Disconnect(id string) {
	for _, l := range h.snapshot() {
		if l.peer.id == id {
			l.fail(fault.E(fault.Unreachable, "wire.Host.Disconnect", id, "disconnected by this host"))
		}
	}
}

// Recheck asks about every connected peer again and cuts those that the gater
// refuses now, and those that were admitted and are not any more.
func (h *Host) Recheck() {
	for _, id := range h.Peers() {
		if h.admit(id) != nil {
			h.Disconnect(id)
		}
	}
	for _, l := range h.snapshot() {
		if !l.outbound && l.admission.admitted.Load() && h.stranger(l.peer.id) {
			l.fail(fault.E(fault.Unauthorized, "wire.Host.Recheck", l.peer.id, "the peer is not admitted any more"))
		}
	}
}

// stranger reports whether a peer is not admitted.
func (h *Host) stranger(id string) bool {
	if h.options.Admit == nil {
		return false
	}
	_, ok := h.options.Admit(id)
	return !ok
}

func (h *Host) currentLink(id string, class Class) *link {
	if class >= classes {
		return nil
	}
	h.mu.RLock()
	p := h.peers[id]
	h.mu.RUnlock()
	if p == nil {
		return nil
	}
	return p.current[class].Load()
}

// adopt takes a new connection into use. Nil: the host is closed.
func (h *Host) adopt(c libp2p.CapableConn, outbound bool) *link {
	var d *directConn
	if !c.As(&d) {
		_ = c.Close() // this host did not make it
		return nil
	}
	if d.lane == laneRelay {
		if h.stranger(c.RemotePeer().String()) {
			_ = c.Close() // it says hello to this host first
			return nil
		}
		d.raw.stranger.leave()
		if !h.spawn(func() { h.relays.serve(c, d) }) {
			_ = c.Close() // the host is closing
		}
		return nil
	}
	if socket, ok := d.raw.Conn.(syscall.Conn); ok && d.lane.class() == Chunk && d.raw.local == nil {
		tuneBulk(socket)
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		_ = c.Close() // the host is closing
		return nil
	}
	p := h.stateLocked(c.RemotePeer())
	l := newLink(h, p, c, d, outbound)
	if outbound || h.options.Admit == nil {
		l.admit()
	}
	h.links[l] = struct{}{}
	p.links[l.class] = append(p.links[l.class], l)
	p.failures[l.class] = failure{}
	var oldest *link
	if len(p.links[l.class]) > maxPerClass {
		oldest = p.links[l.class][0]
	}
	if p.prefersLocked(l, h.id) {
		p.current[l.class].Store(l)
	}
	h.spawnLocked(l.run)
	h.spawnLocked(l.drain)
	h.mu.Unlock()
	if oldest != nil {
		oldest.fail(fault.E(fault.Unreachable, opLink, p.id, "replaced by newer connections"))
	}
	if h.options.OnConnect != nil {
		h.options.OnConnect(p.id, l.class, true)
	}
	return l
}

// prefersLocked reports whether new frames should take l instead of the current
// link. The newest is best, because an older one may be dead without our
// knowing; but when both ends dialled at once, both must choose the same: the
// one dialled by the smaller ID. A Unix socket is better than TCP, whichever is
// newer: the kernel tells at once when the process at its other end is gone. It
// makes no difference here whether a connection is relayed: the end that makes the
// newer one has reason to. The host's mutex is held.
func (p *peerState) prefersLocked(l *link, self string) bool {
	old := p.current[l.class].Load()
	if old == nil || old.dead.Load() {
		return true
	}
	if l.isLocal() != old.isLocal() {
		return l.isLocal()
	}
	crossed := old.outbound != l.outbound && old.relayed == l.relayed && l.born.Sub(old.born) < crossing
	return !crossed || l.outbound == (self < p.id)
}

// drop takes a failed link out of use.
func (h *Host) drop(l *link, why error) {
	h.mu.Lock()
	delete(h.links, l)
	p := l.peer
	live := slices.DeleteFunc(p.links[l.class], func(o *link) bool { return o == l })
	p.links[l.class] = live
	if p.current[l.class].Load() == l {
		var next *link
		if len(live) > 0 {
			next = live[len(live)-1]
		}
		p.current[l.class].Store(next)
	}
	if l.wasRefused() {
		p.failures[l.class] = failure{time.Now(), unreachable(p.id, errRefused)}
	}
	gone := len(live) == 0
	h.forgetLocked(p)
	h.mu.Unlock()
	h.options.Logger.Debug("connection ended", logattr.Peer(p.id), slog.String("class", l.class.String()), logattr.Err(why))
	if gone && h.options.OnConnect != nil {
		h.options.OnConnect(p.id, l.class, false)
	}
}
