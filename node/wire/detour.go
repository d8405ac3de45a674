package wire

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"cartwheel.dev/geo-config/fault"
)

// maxRelays bounds the hosts that are asked for one detour.
const maxRelays = 4

var errNoDetour = errors.New("no third host reaches it")

// made is how an attempt to connect ended.
type made struct {
	conn libp2p.CapableConn
	err  error
}

// connect makes a connection to a peer: the direct way or, where that fails,
// takes long or is known to be broken, over a third host. With patient the
// direct way has a head start. While a third host is looked for the direct way
// is tried again and again, since it may be healed at any moment. It returns
// when no attempt is left running.
func (h *Host) connect(p *peerState, class Class, addresses []ma.Multiaddr, patient bool) (libp2p.CapableConn, error) {
	if h.options.Relays == nil {
		return h.connectAny(h.ctx, p, direct(class), addresses)
	}
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	looking, looked := context.WithCancel(ctx) // for a third host
	defer looked()
	failed := make(chan struct{})
	straight, detour := make(chan made, 1), make(chan made, 1)
	go func() { // joined below
		c, err := h.connectAny(ctx, p, direct(class), addresses)
		if err != nil {
			close(failed)
			c, err = h.persist(looking, p, class, addresses, err)
		}
		straight <- made{c, err}
	}()
	head := time.Duration(0)
	if patient && !p.around() {
		head = h.options.Times.Detour
	}
	timer := time.NewTimer(head)
	defer timer.Stop()
	select {
	case got := <-straight: // it did not fail
		return got.conn, got.err
	case <-failed:
	case <-timer.C:
	}
	go func() { // joined below
		defer looked()
		c, err := h.connectOver(ctx, p, class)
		detour <- made{c, err}
	}()
	return first(straight, detour, cancel)
}

// first returns the first connection of two attempts, and ends the other.
func first(straight, detour <-chan made, cancel func()) (libp2p.CapableConn, error) {
	var won libp2p.CapableConn
	var errs []error
	for range 2 {
		var got made
		select {
		case got = <-straight:
			straight = nil
		case got = <-detour:
			detour = nil
		}
		switch {
		case got.err != nil:
			errs = append(errs, got.err)
		case won == nil:
			won = got.conn
			cancel()
		default:
			_ = got.conn.Close() // a second one is not needed
		}
	}
	if won == nil {
		return nil, errors.Join(errs...)
	}
	return won, nil
}

// persist tries the direct way, which has just failed, until that works or ctx
// ends.
func (h *Host) persist(ctx context.Context, p *peerState, class Class, addresses []ma.Multiaddr, err error) (libp2p.CapableConn, error) {
	for {
		pause := time.NewTimer(max(h.options.Times.Redial, stagger))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil, err
		case <-pause.C:
		}
		c, now := h.connectAny(ctx, p, direct(class), addresses)
		if now == nil {
			return c, nil
		}
		if ctx.Err() == nil {
			err = now
		}
	}
}

// around reports whether any class of a peer goes over a third host now.
func (p *peerState) around() bool {
	for class := range p.current {
		if l := p.current[class].Load(); l != nil && l.spliced {
			return true
		}
	}
	return false
}

// connectOver connects to a peer over the third host with the least round trip
// in all.
func (h *Host) connectOver(ctx context.Context, p *peerState, class Class) (libp2p.CapableConn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*h.options.Times.Dial)
	defer cancel()
	var errs []error
	for _, relay := range h.relays(ctx, p.id) {
		c, err := h.connectThrough(ctx, relay, p, class)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil, errNoDetour
	}
	return nil, errors.Join(errs...)
}

// relays asks third hosts whether they reach a peer, and returns those that do,
// the least round trip in all first.
func (h *Host) relays(ctx context.Context, id string) []string {
	type reached struct {
		relay string
		rtt   time.Duration
	}
	var asked []string
	for _, relay := range h.options.Relays(ctx, id) {
		if relay != id && relay != h.id && !slices.Contains(asked, relay) && len(asked) < maxRelays {
			asked = append(asked, relay)
		}
	}
	answers := make(chan reached, len(asked))
	for _, relay := range asked {
		go func() { // joined below
			rtt, err := h.askReach(ctx, relay, id)
			if err != nil {
				relay = ""
			}
			answers <- reached{relay, rtt}
		}()
	}
	var good []reached
	for range asked {
		if a := <-answers; a.relay != "" {
			good = append(good, a)
		}
	}
	slices.SortFunc(good, func(a, b reached) int { return cmp.Or(cmp.Compare(a.rtt, b.rtt), cmp.Compare(a.relay, b.relay)) })
	out := make([]string, len(good))
	for i := range good {
		out[i] = good[i].relay
	}
	return out
}

// askReach asks a third host for its round trip to a peer, and adds the one to
// the third host itself.
func (h *Host) askReach(ctx context.Context, relay, id string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, h.options.Times.Dial)
	defer cancel()
	l, err := h.directLink(ctx, relay)
	if err != nil {
		return 0, err
	}
	var onward wrapperspb.Int64Value
	began := h.now()
	body, err := l.call(ctx, methodReach, wrapperspb.String(id), nil, &onward, nil)
	body.Release()
	if err != nil {
		return 0, err
	}
	ours := time.Duration(l.rtt.Load())
	if ours == 0 {
		ours = time.Duration(h.now() - began)
	}
	return ours + time.Duration(max(onward.Value, 0)), nil
}

// directLink returns a small connection to a third host that goes over no
// fourth one, making one if there is none.
func (h *Host) directLink(ctx context.Context, id string) (*link, error) {
	if l := h.healthyLink(id); l != nil {
		return l, nil
	}
	h.mu.RLock()
	p := h.peers[id]
	var addresses []ma.Multiaddr
	if p != nil {
		addresses = p.addresses
	}
	h.mu.RUnlock()
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

// healthyLink returns a direct connection on which the peer was heard lately.
func (h *Host) healthyLink(id string) *link {
	for _, class := range [...]Class{Beacon, Operation} {
		l := h.currentLink(id, class)
		if l != nil && !l.spliced && !l.dead.Load() && time.Duration(h.now()-l.heardAt.Load()) < h.options.Times.Suspect {
			return l
		}
	}
	return nil
}

// suspect looks for another path to a peer that has fallen silent, before the
// silence is long enough to cut the connection.
func (h *Host) suspect(l *link) {
	if h.options.Relays == nil || l.spliced || l.local() {
		return
	}
	h.lookAround(l.peer, l.class, func(addresses []ma.Multiaddr) {
		asked := h.now()
		c, err := h.connect(l.peer, l.class, addresses, false)
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

// straighten tries the direct way to every peer that is reached over a third
// host, at every probe and without growing pauses.
func (h *Host) straighten() {
	type detour struct {
		p     *peerState
		class Class
	}
	var around []detour
	h.mu.RLock()
	for _, p := range h.peers {
		for class := range p.current {
			if l := p.current[class].Load(); l != nil && l.spliced {
				around = append(around, detour{p, Class(class)})
			}
		}
	}
	h.mu.RUnlock()
	for _, d := range around {
		h.lookAround(d.p, d.class, func(addresses []ma.Multiaddr) {
			if c, err := h.connectAny(h.ctx, d.p, direct(d.class), addresses); err == nil {
				h.adopt(c, true)
			}
		})
	}
}

// lookAround runs look, which looks for another path, unless that is done
// already or was a moment ago.
func (h *Host) lookAround(p *peerState, class Class, look func([]ma.Multiaddr)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.detours[class] || time.Since(p.looked[class]) < h.options.Times.Probe || len(p.addresses) == 0 {
		return
	}
	addresses := p.addresses
	p.detours[class] = h.spawnLocked(func() {
		look(addresses)
		h.mu.Lock()
		defer h.mu.Unlock()
		p.detours[class], p.looked[class] = false, time.Now()
		h.forgetLocked(p)
	})
}
