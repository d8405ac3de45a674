package wire

import (
	"context"
	"errors"
	"net"
	"time"

	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/unixsock"
)

// dial is an attempt to connect. Several calls may wait for it.
type dial struct {
	done chan struct{}
	link *link // valid after done
	err  error
}

// stagger is the head start of one address over the next.
const stagger = 100 * time.Millisecond

var errNoAddress = errors.New("no connection and no address")

// link returns the connection for a new call, dialling if there is none.
func (h *Host) link(ctx context.Context, id string, class Class) (*link, error) {
	if l := h.currentLink(id, class); l != nil {
		return l, nil
	}
	if class >= classes {
		return nil, fault.E(fault.Invalid, opCall, id, class.String())
	}
	d, l, err := h.dial(id, class, false)
	if d == nil {
		return l, err
	}
	select {
	case <-d.done:
		if d.link == nil {
			return nil, d.err
		}
		return d.link, nil
	case <-ctx.Done():
		return nil, ctxFault(id, ctx.Err())
	}
}

// linkNow returns the current connection. If there is none, it returns nil and
// dials one in the background.
func (h *Host) linkNow(id string, class Class) *link {
	l := h.currentLink(id, class)
	if l == nil && class < classes {
		_, l, _ = h.dial(id, class, false) // the calls that wait get the error
	}
	return l
}

// dial starts or joins an attempt. Exactly one result is not nil: an attempt, a
// connection made meanwhile, or the reason for not trying. With probe it tries even
// right after a failure.
func (h *Host) dial(id string, class Class, probe bool) (*dial, *link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, fault.E(fault.Closed, opCall, h.id, "this host was closed")
	}
	p := h.peers[id]
	if p == nil {
		return nil, nil, unreachable(id, errNoAddress)
	}
	if l := p.current[class].Load(); l != nil {
		return nil, l, nil
	}
	if d := p.dials[class]; d != nil {
		return d, nil, nil
	}
	if len(p.addresses) == 0 {
		return nil, nil, unreachable(id, errNoAddress)
	}
	if f := p.failures[class]; !probe && f.err != nil && time.Since(f.at) < h.options.Times.Redial {
		return nil, nil, f.err
	}
	d := &dial{done: make(chan struct{})}
	p.dials[class] = d
	addresses := p.addresses
	h.spawnLocked(func() { h.runDial(p, class, d, addresses) })
	return d, nil, nil
}

func (h *Host) runDial(p *peerState, class Class, d *dial, addresses []ma.Multiaddr) {
	c, err := h.relays.connect(p, class, addresses, true)
	if err == nil {
		if d.link = h.adopt(c, true); d.link == nil {
			err = fault.E(fault.Closed, opCall, h.id, "this host was closed")
		}
	}
	h.mu.Lock()
	p.dials[class] = nil
	if err != nil {
		d.err = unreachable(p.id, err)
		p.failures[class] = failure{time.Now(), d.err}
	}
	h.forgetLocked(p)
	h.mu.Unlock()
	close(d.done)
}

var errFiltered = errors.New("dropped by a filter")

// connectAny tries all addresses, Unix sockets first, and takes the first that
// answers. It tries each a little after the one before, or as soon as that failed.
// It returns when no attempt is left running.
func (h *Host) connectAny(ctx context.Context, p *peerState, on lane, addresses []ma.Multiaddr) (libp2p.CapableConn, error) {
	if filter := h.filter.Load(); filter != nil && (*filter)(p.id, on.class(), MethodDial).Drop {
		return nil, errFiltered
	}
	if err := h.admit(p.id); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn libp2p.CapableConn
		err  error
	}
	results := make(chan result, len(addresses))
	var before chan struct{} // closed when the attempt before failed
	for i, a := range localFirst(addresses) {
		previous, failed := before, make(chan struct{})
		before = failed
		go func() { // joined below
			c, err := h.connectAfter(ctx, time.Duration(i)*stagger, previous, p, on, a)
			if err != nil {
				close(failed)
			}
			results <- result{c, err}
		}()
	}
	var won libp2p.CapableConn
	var errs []error
	for range addresses {
		r := <-results
		switch {
		case r.err != nil:
			errs = append(errs, r.err)
		case won == nil:
			won = r.conn
			cancel()
		default:
			_ = r.conn.Close() // a second one is not needed
		}
	}
	if won == nil {
		return nil, errors.Join(errs...)
	}
	return won, nil
}

// localFirst returns the addresses with Unix sockets in front.
func localFirst(addresses []ma.Multiaddr) []ma.Multiaddr {
	out := make([]ma.Multiaddr, 0, len(addresses))
	for _, local := range [...]bool{true, false} {
		for _, a := range addresses {
			if unixsock.IsAddress(a) == local {
				out = append(out, a)
			}
		}
	}
	return out
}

// moveToLocal dials Unix sockets of a peer that is connected over TCP. The new
// connection replaces that one. A failure does no harm.
func (h *Host) moveToLocal(p *peerState, class Class, addresses []ma.Multiaddr) {
	if c, err := h.connectAny(h.ctx, p, direct(class), addresses); err == nil {
		h.adopt(c, true)
	}
}

// connectAfter dials when wait is over or the attempt before has failed.
func (h *Host) connectAfter(ctx context.Context, wait time.Duration, failed <-chan struct{}, p *peerState, on lane, a ma.Multiaddr) (libp2p.CapableConn, error) {
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-failed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithTimeout(ctx, h.options.Times.Dial)
	defer cancel()
	return h.transport.connect(ctx, a, p.peer, on)
}

// dialPlain opens a TCP connection to one of a peer's addresses, with nothing on
// it yet, and returns how long that took. It tries each address a little after the
// one before.
func (h *Host) dialPlain(ctx context.Context, id string) (net.Conn, time.Duration, error) {
	if filter := h.filter.Load(); filter != nil && (*filter)(id, Operation, MethodDial).Drop {
		return nil, 0, errFiltered
	}
	_, known := h.addressesOf(id)
	var addresses []ma.Multiaddr
	for _, a := range known {
		if !unixsock.IsAddress(a) {
			addresses = append(addresses, a)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		took time.Duration
		err  error
	}
	results := make(chan result, len(addresses))
	for i, a := range addresses {
		go func() { // joined below
			t := time.NewTimer(time.Duration(i) * stagger)
			defer t.Stop()
			select {
			case <-t.C:
			case <-ctx.Done():
				results <- result{nil, 0, ctx.Err()}
				return
			}
			began := h.now()
			c, err := h.transport.network().Dial(ctx, a)
			results <- result{c, time.Duration(h.now() - began), err}
		}()
	}
	var won net.Conn
	var took time.Duration
	errs := []error{errNoAddress}
	for range addresses {
		r := <-results
		switch {
		case r.err != nil:
			errs = append(errs, r.err)
		case won == nil:
			won, took = r.conn, r.took
			cancel()
		default:
			r.conn.Close() // a second one is not needed
		}
	}
	if won == nil {
		return nil, 0, errors.Join(errs...)
	}
	return won, took, nil
}
