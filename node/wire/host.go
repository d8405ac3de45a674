package wire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/wire/framing"
	"cartwheel.dev/node/wire/unixsock"
)

// Host is one end of every connection of a process.
type Host struct {
	options    Options
	id         string
	epoch      time.Time // zero of the host clock
	transport  *transport
	methods    [MaxMethod]atomic.Pointer[method]
	filter     atomic.Pointer[Filter]
	coordinate atomic.Pointer[Coordinate]
	buffers    framing.Buffers
	calls      callPool
	workers    [classes]*workers[work]
	inner      [classes]*workers[work] // those of Options.Inner's peers
	relays     relays
	accounts   accounts
	ctx        context.Context // of dials and relayed connections; ends at Close
	end        context.CancelFunc
	wg         sync.WaitGroup // every goroutine of the host

	listens atomic.Bool // Listen was called: all handlers are registered

	mu        sync.RWMutex // guards below; never held across I/O
	closed    bool
	listeners []libp2p.Listener
	peers     map[string]*peerState
	links     map[*link]struct{}
}

// method is a registered handler; exactly one field is set.
type method struct {
	inline  func(*Request)
	spawn   func(context.Context, *Request)
	message func(Message)
}

// KeyID returns this host's peer ID.
func (h *Host) KeyID() string { return h.id }

// Inline registers a handler that runs on the goroutine that reads the connection.
// It must not block. It may answer later, from another goroutine.
func (h *Host) Inline(m Method, handler func(*Request)) { h.register(m, &method{inline: handler}) }

// Spawn registers a handler that may block. A pool runs it, with the request's
// context. The handler must answer before it returns, and must Yield before it
// waits for anything that may need a worker itself.
func (h *Host) Spawn(m Method, handler func(context.Context, *Request)) {
	h.register(m, &method{spawn: handler})
}

// Message registers a handler for one-way frames. It runs on the goroutine that
// reads the connection and must not block.
func (h *Host) Message(m Method, handler func(Message)) { h.register(m, &method{message: handler}) }

// register replaces the handler that was registered before. It panics if the
// method is not below MaxMethod.
func (h *Host) register(number Method, m *method) { h.methods[number].Store(m) }

// pool returns the workers for a peer's requests.
func (h *Host) pool(class Class, peer string) *workers[work] {
	if h.options.Inner != nil && h.options.Inner(peer) {
		return h.inner[class]
	}
	return h.workers[class]
}

// Methods lists the methods that have a handler, without wire's own.
func (h *Host) Methods() []Method {
	var out []Method
	for i := range h.methods[:methodPing] {
		if h.methods[i].Load() != nil {
			out = append(out, Method(i))
		}
	}
	return out
}

// SetCoordinate sets what this host's calls and answers carry to peers that read
// it: any peer where it has at most two dimensions, else those of
// Options.ReadsWide and those that sent such a coordinate themselves.
func (h *Host) SetCoordinate(c Coordinate) { h.coordinate.Store(&c) }

// SetFilter installs f, or removes the filter when f is nil.
func (h *Host) SetFilter(f Filter) {
	if f == nil {
		h.filter.Store(nil)
		return
	}
	h.filter.Store(&f)
}

// Addresses returns where this host listens, with the addresses of the interfaces
// in place of unspecified ones, and Unix sockets last. One address serves all
// classes. The address of a Unix socket is safe to publish: on another machine the
// path leads nowhere or to another host, and the dialler takes another address.
func (h *Host) Addresses() []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var out, local []string
	for _, l := range h.listeners {
		if unixsock.IsAddress(l.Multiaddr()) {
			local = append(local, l.Multiaddr().String())
			continue
		}
		resolved, err := manet.ResolveUnspecifiedAddresses([]ma.Multiaddr{l.Multiaddr()}, nil)
		if err != nil {
			resolved = []ma.Multiaddr{l.Multiaddr()}
		}
		for _, a := range resolved {
			out = append(out, a.String())
		}
	}
	return append(out, local...)
}

// admit asks the gater. It refuses a peer with this host's own key.
func (h *Host) admit(id string) error {
	if id == h.id {
		return fault.E(fault.Unauthorized, "wire.Host", id, "a peer with this host's own key")
	}
	if h.options.Gater == nil {
		return nil
	}
	err := h.options.Gater(id)
	if err != nil {
		h.options.Logger.Debug("peer refused", logattr.Peer(id), logattr.Err(err))
	}
	return err
}

// now is the host clock: nanoseconds since New, monotonic.
func (h *Host) now() int64 { return int64(time.Since(h.epoch)) }

// spawn starts a goroutine that Close waits for. False: the host is closed.
func (h *Host) spawn(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spawnLocked(f)
}

// spawnLocked starts a goroutine that Close waits for; false: the host is closed.
// h.mu is held.
func (h *Host) spawnLocked(f func()) bool {
	if h.closed {
		return false
	}
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		f()
	}()
	return true
}

func (h *Host) snapshot() []*link {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := make([]*link, 0, len(h.links))
	for l := range h.links {
		out = append(out, l)
	}
	return out
}
