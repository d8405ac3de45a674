package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
	"cartwheel.dev/node/wire/unixsock"
)

const opSplice fault.Op = "wire.splice"

// maxSpliceText bounds the request and the answer that begin a splice.
const maxSpliceText = 4096

// reach answers whether this host has a direct connection to another one, and
// how far that is.
func (h *Host) reach(r *Request) {
	var to wrapperspb.StringValue
	if err := r.Decode(&to); err != nil {
		r.Fail(err)
		return
	}
	if err := h.maySplice(r.Peer, to.Value); err != nil {
		r.Fail(err)
		return
	}
	l := h.healthyLink(to.Value)
	if l == nil {
		r.Fail(fault.E(fault.Unreachable, opSplice, to.Value, "no direct connection"))
		return
	}
	r.Reply(wrapperspb.Int64(l.rtt.Load()))
}

func (h *Host) maySplice(from, to string) error {
	if h.options.Splice == nil {
		return fault.E(fault.NotSupported, opSplice, h.id, "this host passes nothing on")
	}
	return h.options.Splice(from, to)
}

// serveSplice is the third host's part: it dials the other peer for the one at
// the end of c and passes bytes on until either ends. What passes is encrypted
// between the two, who authenticate each other; nothing of it is seen here.
func (h *Host) serveSplice(c libp2p.CapableConn, near *directConn) {
	defer c.Close()
	from := c.RemotePeer().String()
	to, far, err := h.openSplice(from, near)
	if err == nil {
		defer h.splices.leave(from)
		defer far.Close()
	}
	if answerErr := answerSplice(near, err); err != nil || answerErr != nil {
		h.options.Logger.Debug("a splice was not made", "peer", from, "to", to, "error", errors.Join(err, answerErr))
		return
	}
	h.options.Logger.Info("passing bytes on between peers that do not reach each other", "peer", from, "to", to)
	stop := context.AfterFunc(h.ctx, func() { _ = c.Close(); far.Close() }) // both copies end with either
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.passOn(far, near, to)
		far.Close()
		_ = near.Close() // the other copy must not wait for it
	}()
	h.passOn(near, far, from)
	far.Close()
	_ = near.Close()
	<-done
}

// openSplice reads the request and dials. Without an error the splice counts.
func (h *Host) openSplice(from string, near net.Conn) (to string, far net.Conn, err error) {
	if err = near.SetDeadline(time.Now().Add(h.options.Times.Dial)); err != nil {
		return "", nil, err
	}
	block, err := framing.ReadBlock(near, maxSpliceText)
	if err != nil {
		return "", nil, err
	}
	to = string(block[2:])
	if err = h.maySplice(from, to); err != nil {
		return to, nil, err
	}
	if err = h.splices.enter(from); err != nil {
		return to, nil, err
	}
	ctx, cancel := context.WithTimeout(h.ctx, h.options.Times.Dial)
	defer cancel()
	if far, _, err = h.dialPlain(ctx, to); err != nil {
		h.splices.leave(from)
		return to, nil, fault.Wrap(fault.Unreachable, opSplice, to, err)
	}
	return to, far, nil
}

func answerSplice(near net.Conn, failed error) error {
	var text []byte
	if failed != nil {
		text = framing.AppendFault(nil, failed)
	}
	text = text[:min(len(text), maxSpliceText)]
	if err := near.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err := near.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(text))), text...))
	return err
}

// dialPlain opens a TCP connection to a peer's addresses, with nothing on it
// yet, and says how long that one took. Each is tried a little after the one
// before.
func (h *Host) dialPlain(ctx context.Context, id string) (net.Conn, time.Duration, error) {
	if filter := h.filter.Load(); filter != nil && (*filter)(id, Operation, MethodDial).Drop {
		return nil, 0, errFiltered
	}
	h.mu.RLock()
	var addresses []ma.Multiaddr
	if p := h.peers[id]; p != nil {
		for _, a := range p.addresses {
			if !unixsock.IsAddress(a) {
				addresses = append(addresses, a)
			}
		}
	}
	h.mu.RUnlock()
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

// passOn copies from one end to the other until either fails, is silent for
// twice as long as the ends themselves put up with, or a filter cuts it.
func (h *Host) passOn(to, from net.Conn, peer string) {
	buffer := h.buffers.Get(rawBuffer)
	defer buffer.Release()
	var p pace
	for {
		if from.SetReadDeadline(time.Now().Add(2*h.options.Times.Silence)) != nil {
			return
		}
		n, err := from.Read(buffer.Bytes())
		if n > 0 {
			if filter := h.filter.Load(); filter != nil && (*filter)(peer, Chunk, MethodSplice).Drop {
				return
			}
			if to.SetWriteDeadline(time.Now().Add(2*h.options.Times.Silence)) != nil {
				return
			}
			if _, err := to.Write(buffer.Bytes()[:n]); err != nil || !h.rest(p.take(time.Duration(h.now()), n, h.splices.share())) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// overSplice is a byte stream to a peer that a third host passes on, where
// otherwise a socket stands.
type overSplice struct {
	net.Conn
	outer libp2p.CapableConn
	relay string
}

func (c *overSplice) LocalMultiaddr() ma.Multiaddr  { return c.outer.LocalMultiaddr() }
func (c *overSplice) RemoteMultiaddr() ma.Multiaddr { return c.outer.RemoteMultiaddr() }
func (c *overSplice) Close() error                  { return c.outer.Close() }

// connectThrough connects to a peer over one third host. Identity and
// encryption are those of any connection, from end to end.
func (h *Host) connectThrough(ctx context.Context, relay string, p *peerState, class Class) (libp2p.CapableConn, error) {
	h.mu.RLock()
	r := h.peers[relay]
	var addresses []ma.Multiaddr
	if r != nil {
		addresses = r.addresses
	}
	h.mu.RUnlock()
	if len(addresses) == 0 {
		return nil, unreachable(relay, errNoAddress)
	}
	outer, err := h.connectAny(ctx, r, laneSplice, addresses)
	if err != nil {
		return nil, err
	}
	var d *directConn
	if !outer.As(&d) {
		return nil, errors.Join(errNoDetour, outer.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = outer.Close() }) // what waits for it fails
	defer stop()
	if err := askSplice(d, p.id, h.options.Times.Dial); err != nil {
		return nil, errors.Join(err, outer.Close())
	}
	over := &overSplice{Conn: d, outer: outer, relay: relay}
	scope, err := h.transport.limits.OpenConnection(network.DirOutbound, false, over.RemoteMultiaddr())
	if err != nil {
		return nil, errors.Join(err, outer.Close())
	}
	if err := scope.SetPeer(p.peer); err != nil {
		scope.Done()
		return nil, errors.Join(err, outer.Close())
	}
	c, err := h.transport.dial[spliced(class)].Upgrade(ctx, h.transport, newRaw(over), network.DirOutbound, p.peer, scope)
	if err != nil {
		return nil, errors.Join(err, outer.Close())
	}
	return c, nil
}

// askSplice asks for the peer at the far end and waits for the answer.
func askSplice(c net.Conn, id string, limit time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := c.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(id))), id...)); err != nil {
		return err
	}
	block, err := framing.ReadBlock(c, maxSpliceText)
	switch {
	case errors.Is(err, io.EOF):
		return errRefused
	case err != nil:
		return err
	case len(block) > 2:
		return framing.ParseFault(block[2:], id)
	}
	return c.SetDeadline(time.Time{})
}
