//go:build !linux

package wire

import "net"

// quiet is one end of a Unix socket.
type quiet struct{ *net.UnixConn }

// hush takes a connection over.
func hush(c *net.UnixConn) (*quiet, error) { return &quiet{c}, nil }

// writev writes all of v, in as few system calls as the socket lets it.
func (q *quiet) writev(v net.Buffers) (int64, error) { return v.WriteTo(q.UnixConn) }

// try writes what the socket takes at once: here it cannot be asked to.
func (q *quiet) try([]byte) int { return 0 }
