//go:build !linux

package unixsock

import "net"

// epollConn is one end of a Unix socket. This system has no epoll.
type epollConn struct{ *net.UnixConn }

// wrap makes an epollConn of a connection.
func wrap(c *net.UnixConn) (*epollConn, error) { return &epollConn{c}, nil }

// WriteAll writes all of v, in as few system calls as the socket allows.
func (c *epollConn) WriteAll(v net.Buffers) (int64, error) { return v.WriteTo(c.UnixConn) }

// TryWrite writes nothing: this system has no such write.
func (c *epollConn) TryWrite([]byte) int { return 0 }
