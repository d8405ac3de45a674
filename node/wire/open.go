package wire

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/wire/relay"
	"cartwheel.dev/node/wire/unixsock"
)

// New makes a host that can dial at once. Register handlers, then Listen.
func New(o Options) (*Host, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	h := &Host{options: o, id: o.Key.KeyID(), epoch: time.Now(),
		peers: map[string]*peerState{}, links: map[*link]struct{}{}}
	t, err := newTransport(&h.options, h.admit)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, opNew, "", err)
	}
	h.transport = t
	h.ctx, h.end = context.WithCancel(context.Background())
	for class := range h.workers {
		h.workers[class] = newWorkers(o.Limits.Workers, o.Limits.Backlog, o.Limits.Waiting, &h.wg, work.serve)
		h.inner[class] = newWorkers(o.Limits.Workers, o.Limits.Backlog, o.Limits.Waiting, &h.wg, work.serve)
	}
	h.relays = newRelays(h)
	h.accounts = accounts{limits: o.Limits.Account, open: map[string]*account{}}
	h.Inline(methodReach, h.relays.reach)
	h.Inline(methodPing, func(r *Request) { r.Reply(nil) })
	h.wg.Add(1)
	go h.tick()
	return h, nil
}

const opListen fault.Op = "wire.Host.Listen"

// Listen starts accepting connections at Options.Listen. It opens Unix sockets
// first, so that peers that wait for this host find the better path. If one address
// fails, those before it stay open until Close.
func (h *Host) Listen() error {
	h.listens.Store(true)
	parsed := make([]ma.Multiaddr, 0, len(h.options.Listen))
	for _, text := range h.options.Listen {
		address, err := ma.NewMultiaddr(text)
		if err != nil {
			return &fault.Error{Kind: fault.Invalid, Op: opListen, Subject: text, Public: "is no address such as /ip4/192.0.2.1/tcp/7400", Cause: err}
		}
		parsed = append(parsed, address)
	}
	for _, address := range localFirst(parsed) {
		if err := h.listenAt(address, h.options.SocketMode); err != nil {
			return err
		}
	}
	return nil
}

// ListenLocal starts accepting connections at one more Unix socket, whose mode
// is PrivateSocket or SharedSocket. NotSupported: this system has none.
func (h *Host) ListenLocal(path string, mode fs.FileMode) error {
	if mode != PrivateSocket && mode != SharedSocket {
		return fault.E(fault.Invalid, opListen, path, unixsock.BadMode)
	}
	address, err := ma.NewMultiaddr("/unix" + filepath.ToSlash(path))
	if err != nil || !filepath.IsAbs(path) {
		return &fault.Error{Kind: fault.Invalid, Op: opListen, Subject: path, Public: "not an absolute path", Cause: err}
	}
	return h.listenAt(address, mode)
}

func (h *Host) listenAt(address ma.Multiaddr, mode fs.FileMode) error {
	text := address.String()
	switch {
	case unixsock.IsAddress(address) && !h.transport.local:
		return fault.E(fault.NotSupported, opListen, text, "no local connections on this system")
	case !h.transport.CanDial(address):
		return fault.E(fault.Invalid, opListen, text, "neither a TCP address nor a Unix socket's")
	}
	l, err := h.transport.listen(address, mode)
	if err != nil {
		return fault.Wrap(fault.IO, opListen, text, err)
	}
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.listeners = append(h.listeners, l)
		h.wg.Add(1)
		go h.accept(l)
	}
	h.mu.Unlock()
	if closed {
		return errors.Join(fault.E(fault.Closed, opListen, text, ""), l.Close())
	}
	return nil
}

func (h *Host) accept(l libp2p.Listener) {
	defer h.wg.Done()
	for {
		c, err := l.Accept()
		if err != nil {
			if !errors.Is(err, libp2p.ErrListenerClosed) {
				h.options.Logger.Error("listening ended", slog.String("address", l.Multiaddr().String()), logattr.Err(err))
			}
			return
		}
		h.adopt(c, false)
	}
}

// Close ends all connections and waits for every goroutine, including handlers,
// whose contexts end. Calls in flight fail with Closed. Frames that were queued
// before go out if the peers take them within flushTime.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		h.wg.Wait()
		return nil
	}
	h.closed = true
	listeners := h.listeners
	h.mu.Unlock()
	var err error
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	h.flush()
	why := fault.E(fault.Closed, "wire.Host.Close", h.id, "this host was closed")
	for _, l := range h.snapshot() {
		l.fail(why)
	}
	h.end()
	for class := range h.workers {
		h.workers[class].close()
		h.inner[class].close()
	}
	h.wg.Wait()
	return errors.Join(err, h.transport.limits.Close())
}

// flushTime bounds how long Close waits for peers to take what is queued.
const flushTime = 100 * time.Millisecond

func (h *Host) flush() {
	poll := time.NewTicker(flushTime / 20)
	defer poll.Stop()
	for range 20 {
		waiting := false
		for _, l := range h.snapshot() {
			waiting = waiting || l.queue.IsWaiting() || l.conn.raw.waiting()
		}
		if !waiting {
			return
		}
		<-poll.C
	}
}

func newRelays(h *Host) relays {
	l := h.options.Limits
	r := relays{host: h}
	r.server = relay.NewServer(r, relay.Config{
		Limits: relay.Limits{Open: l.Relayed, PerPeer: l.PeerRelayed, Rate: l.RelayRate, Bytes: l.RelayBytes},
		Dial:   h.options.Times.Dial, Silence: h.options.Times.Silence, Buffers: &h.buffers, Logger: h.options.Logger})
	return r
}
