package simulation

import (
	"cmp"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// window is how much may be under way on a connection until a write waits.
const window = 1 << 20

// resend is how much later what was lost arrives.
const resend = 250 * time.Millisecond

// conn is one end of a connection. The network's mutex guards all fields that
// change.
type conn struct {
	net           *network
	local, remote *host
	number        uint64
	peer          *conn
	chance        *rand.Rand // of what this end sends

	in       []segment // what the peer sent, in order
	waiting  int       // bytes of in
	closed   bool      // by this end
	ended    error     // by the peer: io.EOF or a reset, behind in
	endedAt  time.Time
	deadline time.Time
	left     int           // bytes that this end may send until the connection breaks; 0: it does not
	readable chan struct{} // one token when a reader should look again
	writable chan struct{} // likewise a writer
}

// segment is bytes on their way.
type segment struct {
	bytes []byte
	due   time.Time
	stuck bool // sent across a cut; due once that is healed
}

var _ manet.Conn = (*conn)(nil)

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	for {
		c.net.mu.Lock()
		switch {
		case c.closed:
			c.net.mu.Unlock()
			return 0, net.ErrClosed
		case c.ended != nil && !time.Now().Before(c.endedAt):
			c.net.mu.Unlock()
			return 0, syscall.EPIPE
		case c.late():
			c.net.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case c.peer.waiting < window:
			c.sendLocked(b)
			c.net.mu.Unlock()
			return len(b), nil
		}
		until := c.deadline
		c.net.mu.Unlock()
		c.await(c.writable, until)
	}
}

func (c *conn) late() bool { return !c.deadline.IsZero() && !time.Now().Before(c.deadline) }

// await waits for a token or a moment.
func (c *conn) await(token chan struct{}, until time.Time) {
	if until.IsZero() {
		<-token
		return
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-token:
	case <-t.C:
	}
}

// sendLocked puts bytes on their way. The network's mutex is held.
func (c *conn) sendLocked(b []byte) {
	p := c.peer
	if p.closed {
		return // the peer's reset is on its way
	}
	if c.net.note != nil {
		c.net.note(c, len(b))
	}
	broken := c.left > 0 && len(b) >= c.left && c.net.ways[way{c.local, c.remote}].cut == 0
	if broken {
		b = b[:c.left]
	}
	c.left = max(0, c.left-len(b))
	s := segment{bytes: slices.Clone(b)}
	c.timeLocked(&s)
	p.in = append(p.in, s)
	p.waiting += len(b)
	signal(p.readable)
	if broken {
		c.net.resets++
		c.ended, c.endedAt = syscall.ECONNRESET, time.Now()
		p.ended, p.endedAt = syscall.ECONNRESET, s.due
		signal(c.readable)
		signal(c.writable)
		signal(p.writable)
	}
}

// timeLocked draws when a segment of this end arrives. The network's mutex is
// held.
func (c *conn) timeLocked(s *segment) {
	w := c.net.ways[way{c.local, c.remote}]
	if s.stuck = w.cut > 0; s.stuck {
		return
	}
	s.due = time.Now().Add(w.delay + w.extra)
	if w.jitter > 0 {
		s.due = s.due.Add(time.Duration(c.chance.Int64N(int64(w.jitter))))
	}
	if w.loss > 0 && c.chance.Float64() < w.loss {
		s.due = s.due.Add(resend)
	}
	for i := len(c.peer.in) - 1; i >= 0; i-- {
		if before := &c.peer.in[i]; !before.stuck {
			if before.due.After(s.due) {
				s.due = before.due
			}
			break
		}
	}
}

// resumeLocked times anew what this end sent across a cut. The network's mutex is
// held.
func (c *conn) resumeLocked() {
	if c.peer == nil {
		return
	}
	changed := false
	for i := range c.peer.in {
		if s := &c.peer.in[i]; s.stuck {
			rest := c.peer.in
			c.peer.in = rest[:i]
			c.timeLocked(s)
			c.peer.in = rest
			changed = changed || !s.stuck
		}
	}
	if changed {
		signal(c.peer.readable)
	}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	for {
		c.net.mu.Lock()
		n, until, err := c.readLocked(b)
		c.net.mu.Unlock()
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		c.await(c.readable, until)
	}
}

// readLocked takes what has arrived, and says until when nothing else will; zero:
// until a token. The network's mutex is held.
func (c *conn) readLocked(b []byte) (n int, until time.Time, err error) {
	now := time.Now()
	switch {
	case c.closed:
		return 0, until, net.ErrClosed
	case c.late():
		return 0, until, os.ErrDeadlineExceeded
	}
	for n < len(b) && len(c.in) > 0 && !c.in[0].stuck && !c.in[0].due.After(now) {
		k := copy(b[n:], c.in[0].bytes)
		n += k
		if c.in[0].bytes = c.in[0].bytes[k:]; len(c.in[0].bytes) == 0 {
			c.in = c.in[1:]
		}
	}
	if n > 0 {
		if c.waiting -= n; c.waiting < window {
			signal(c.peer.writable)
		}
		return n, until, nil
	}
	if c.ended != nil && !c.endedAt.After(now) && (len(c.in) == 0 || !errors.Is(c.ended, io.EOF)) {
		return 0, until, c.ended
	}
	earlier := func(t time.Time) {
		if until.IsZero() || t.Before(until) {
			until = t
		}
	}
	if len(c.in) > 0 && !c.in[0].stuck {
		earlier(c.in[0].due)
	}
	if c.ended != nil && c.endedAt.After(now) {
		earlier(c.endedAt)
	}
	if !c.deadline.IsZero() {
		earlier(c.deadline)
	}
	return 0, until, nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.closeLocked(true)
	return nil
}

// closeLocked ends this end, and tells the peer if told. The network's mutex is
// held.
func (c *conn) closeLocked(told bool) {
	if c.closed {
		return
	}
	c.closed = true
	delete(c.net.live, c)
	signal(c.readable)
	signal(c.writable)
	p := c.peer
	if p == nil || p.closed || p.ended != nil || !told {
		return
	}
	w := c.net.ways[way{c.local, c.remote}]
	if w.cut > 0 {
		return // the peer finds out by itself
	}
	p.ended, p.endedAt = io.EOF, time.Now().Add(w.delay+w.extra)
	if k := len(p.in); k > 0 && p.in[k-1].due.After(p.endedAt) {
		p.endedAt = p.in[k-1].due
	}
	signal(p.readable)
	signal(p.writable)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.deadline = t
	signal(c.readable)
	signal(c.writable)
	return nil
}

// SetReadDeadline implements net.Conn; both directions share one.
func (c *conn) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local.addr() }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote.addr() }

// LocalMultiaddr implements manet.Conn.
func (c *conn) LocalMultiaddr() ma.Multiaddr { return ma.StringCast(c.local.address()) }

// RemoteMultiaddr implements manet.Conn.
func (c *conn) RemoteMultiaddr() ma.Multiaddr { return ma.StringCast(c.remote.address()) }

func sortBy[T any, K cmp.Ordered](list []T, key func(T) K) {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
