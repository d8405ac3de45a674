package wire

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/node/wire/unixsock"
)

// single takes the place of a stream multiplexer in libp2p and multiplexes
// nothing: a connection is one stream on one lane.
type single struct{ lane lane }

var errNoStreams = errors.New("a connection of this protocol has no streams")

// NewConn implements network.Multiplexer.
func (s single) NewConn(c net.Conn, _ bool, _ network.PeerScope) (network.MuxedConn, error) {
	secured, ok := c.(*securedConn)
	if !ok {
		return nil, errors.New("a connection that this host did not secure")
	}
	return &directConn{Conn: secured, raw: secured.raw, lane: s.lane}, nil
}

// directConn is the secured connection. Its Close closes the socket at once and
// does not wait for a peer that may be gone.
type directConn struct {
	net.Conn
	raw    *raw
	lane   lane
	closed atomic.Bool
}

var _ network.MuxedConn = (*directConn)(nil)

func (c *directConn) Close() error {
	c.closed.Store(true)
	return c.raw.Close()
}

func (c *directConn) CloseWithError(network.ConnErrorCode) error { return c.Close() }
func (c *directConn) IsClosed() bool                             { return c.closed.Load() }
func (c *directConn) OpenStream(context.Context) (network.MuxedStream, error) {
	return nil, errNoStreams
}
func (c *directConn) AcceptStream() (network.MuxedStream, error) { return nil, errNoStreams }

func (c *directConn) As(target any) bool {
	t, ok := target.(**directConn)
	if ok {
		*t = c
	}
	return ok
}

// rawBuffer is how much is gathered before a system call. TLS writes records
// of 16 KiB; gathered, they cost a quarter of the calls and wake-ups.
const rawBuffer = 64 << 10

// raw is the socket below the encryption. After gatherWrites, it gathers writes until
// flush. It notes traffic, so that the host can tell silence from a slow large
// frame.
type raw struct {
	manet.Conn
	local       socket    // the same if it is a Unix socket, otherwise nil
	stranger    *stranger // its place until the peer is admitted; nil where this host dialled
	heard, sent atomic.Bool
	came        atomic.Uint64 // bytes that were read
	went        atomic.Uint64 // bytes that were written, but to a Unix socket
	turns       turns         // not nil while its handshake has one of them

	mu      sync.Mutex // guards below; held while writing to the socket
	gathers bool
	out     []byte
}

func newRaw(c manet.Conn) *raw {
	local, _ := c.(socket)
	return &raw{Conn: c, local: local}
}

// socket is a Unix socket: it takes frames and bodies side by side.
type socket interface {
	WriteAll(net.Buffers) (int64, error) // in one system call if possible
	TryWrite([]byte) int                 // what it takes at once
}

var _ socket = (*unixsock.Conn)(nil)

// Socket returns the Unix socket below, or nil.
func (r *raw) Socket() *unixsock.Conn {
	c, _ := r.Conn.(*unixsock.Conn)
	return c
}

func (r *raw) gatherWrites() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.local == nil { // its frames are gathered already
		r.gathers, r.out = true, make([]byte, 0, rawBuffer)
	}
}

func (r *raw) Read(b []byte) (int, error) {
	read := r.Conn.Read
	if r.turns != nil {
		read = r.readInTurn
	}
	n, err := read(b)
	if n > 0 {
		r.came.Add(uint64(n))
		if !r.heard.Load() {
			r.heard.Store(true)
		}
	}
	return n, err
}

func (r *raw) Write(b []byte) (int, error) {
	r.went.Add(uint64(len(b)))
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.gathers {
		r.sent.Store(true)
		return r.Conn.Write(b)
	}
	if len(r.out)+len(b) > cap(r.out) {
		if err := r.flushLocked(); err != nil {
			return 0, err
		}
	}
	if len(b) >= cap(r.out) {
		r.sent.Store(true)
		return r.Conn.Write(b)
	}
	r.out = append(r.out, b...)
	return len(b), nil
}

// WriteVector writes several slices in one system call, to a Unix socket only. It
// empties v.
func (r *raw) WriteVector(v *net.Buffers) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent.Store(true)
	_, err := r.local.WriteAll(*v)
	*v = nil
	return err
}

// tryWrite writes to a Unix socket what it takes at once, and returns how much
// that is. It returns 0 while another write is in progress, or after an error,
// which the next ordinary write finds again.
func (r *raw) tryWrite(b []byte) int {
	if !r.mu.TryLock() {
		return 0
	}
	defer r.mu.Unlock()
	r.sent.Store(true)
	return r.local.TryWrite(b)
}

// Close closes the socket. The socket of a stranger that lost its place is closed
// already.
func (r *raw) Close() error {
	r.stranger.leave()
	if err := r.Conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// waiting reports whether anything is gathered or being written.
func (r *raw) waiting() bool {
	if !r.mu.TryLock() { // held while writing
		return true
	}
	defer r.mu.Unlock()
	return len(r.out) > 0
}

func (r *raw) flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flushLocked()
}

// flushLocked writes what was gathered. r.mu is held.
func (r *raw) flushLocked() error {
	if len(r.out) == 0 {
		return nil
	}
	_, err := r.Conn.Write(r.out)
	r.out = r.out[:0]
	r.sent.Store(true)
	return err
}

// abort makes the next Close discard what the peer has not taken.
func (r *raw) abort() {
	if c, ok := r.Conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = c.SetLinger(0) // without it the kernel keeps trying for a while
	}
}

// rawListener accepts connections as raw ones, each with a place among the
// strangers.
type rawListener struct {
	manet.Listener
	strangers *strangers
}

func (l rawListener) Accept() (manet.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		r := newRaw(c)
		if r.stranger, err = l.strangers.enterTCP(c); err == nil {
			return r, nil
		}
		_ = r.Close() // it was refused
	}
}

// localListener accepts connections over a Unix socket as raw ones, each with a
// place among the strangers.
type localListener struct {
	*unixsock.Listener
	strangers *strangers
}

func (l localListener) Accept() (manet.Conn, error) {
	c, err := l.AcceptConn()
	if err != nil {
		return nil, err
	}
	r := newRaw(c)
	r.stranger = l.strangers.enterLocal(c.User(), c)
	return r, nil
}

// tracked hands the raw connection below a secured one up to single.NewConn.
type tracked struct{ sec.SecureTransport }

func (t tracked) SecureInbound(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	r, ok := c.(*raw)
	if !ok {
		return secured(nil, c, errNotOurs)
	}
	var s sec.SecureConn
	err := r.inTurn(func() (err error) {
		s, err = t.SecureTransport.SecureInbound(ctx, c, id)
		return err
	})
	return secured(s, c, err)
}

func (t tracked) SecureOutbound(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	s, err := t.SecureTransport.SecureOutbound(ctx, c, id)
	return secured(s, c, err)
}

var errNotOurs = errors.New("a connection that this host did not open")

func secured(s sec.SecureConn, c net.Conn, err error) (sec.SecureConn, error) {
	if err != nil {
		return nil, err
	}
	raw, ok := c.(*raw)
	if !ok {
		return nil, errors.Join(errNotOurs, s.Close())
	}
	return &securedConn{s, raw}, nil
}

type securedConn struct {
	sec.SecureConn
	raw *raw
}

// inTurn runs the handshake of an accepted connection. It waits for a turn if the
// connection is a stranger's. If the stranger has lost its place meanwhile, the
// handshake does not begin.
func (r *raw) inTurn(handshake func() error) error {
	o := r.stranger
	if o == nil || o.listed || o.pool.turns == nil {
		return handshake()
	}
	o.pool.turns <- struct{}{}
	defer func() { <-o.pool.turns }()
	if o.gone() {
		return errCrowded
	}
	r.turns = o.pool.turns
	defer func() { r.turns = nil }()
	return handshake()
}

// readInTurn reads, and lets other handshakes compute meanwhile.
func (r *raw) readInTurn(b []byte) (int, error) {
	<-r.turns
	defer func() { r.turns <- struct{}{} }()
	return r.Conn.Read(b)
}
