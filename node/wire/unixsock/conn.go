package unixsock

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

// MaxPath is how many bytes the path of a Unix socket may have on this system.
// 0 means that the system has none.
const MaxPath = maxPath

// bufferSize is what a Unix socket holds of sent bytes that the peer has not
// read. The system may allow less.
const bufferSize = 1 << 20

// IsAddress reports whether an address is a Unix socket's: /unix/PATH.
func IsAddress(a ma.Multiaddr) bool { return len(a) == 1 && a[0].Protocol().Code == ma.P_UNIX }

func pathOf(a ma.Multiaddr) string { return filepath.FromSlash(a[0].Value()) }

// Conn is one end of a connection over a Unix socket.
type Conn struct {
	*epollConn
	address ma.Multiaddr
	user    uint32 // of the process at the other end, as the kernel has it
	slot    *slot  // nil if this end dialled
}

// newConn gives a connection limit for its handshake.
func newConn(c *net.UnixConn, address ma.Multiaddr, limit time.Duration) (*Conn, error) {
	user, err := socketUser(c)
	if err != nil {
		return nil, err
	}
	widen(c, bufferSize)
	e, err := wrap(c)
	if err != nil {
		return nil, err
	}
	if err := e.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return &Conn{epollConn: e, address: address, user: user}, nil
}

// Socket returns the connection itself: a Security takes every connection that
// says which socket it is on.
func (c *Conn) Socket() *Conn { return c }

// User returns the user of the process at the other end, as the kernel has it.
func (c *Conn) User() uint32 { return c.user }

// LocalMultiaddr implements manet.Conn, as do the others.
func (c *Conn) LocalMultiaddr() ma.Multiaddr  { return c.address }
func (c *Conn) RemoteMultiaddr() ma.Multiaddr { return c.address }
func (c *Conn) Close() error {
	c.slot.release()
	return c.epollConn.Close()
}

// Dial connects to a socket of this machine. The connection has limit for its
// handshake.
func Dial(ctx context.Context, address ma.Multiaddr, limit time.Duration) (*Conn, error) {
	path := pathOf(address)
	if len(path) > maxPath {
		return nil, errors.New("a path too long for a socket of this system")
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("not a Unix socket"), c.Close())
	}
	s, err := newConn(u, address, limit)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}
